import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock, ManualClock } from '../../src/core/clock.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import { createLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { parseUpstreamsOptions, type UpstreamsOptionsInput } from '../../src/upstreams/options.ts'
import type { StartProbing } from '../../src/upstreams/probes/shared-probes.ts'
import type { UpstreamResponse } from '../../src/upstreams/response.ts'
import { startUpstreams, type Upstreams } from '../../src/upstreams/service.ts'

export type Rig = AsyncDisposable & {
  readonly upstreams: Upstreams
  readonly registry: MetricsRegistry
  /** Every line that was logged. */
  readonly log: string[]
}

type Given = UpstreamsOptionsInput & {
  readonly clock: Clock
  readonly env?: Readonly<Record<string, string>>
  readonly probing?: StartProbing
}

/** The upstreams module over nodes on loopback, with its log and lifecycle reports recorded. */
export async function startRig({ clock, env = {}, probing, ...options }: Given): Promise<Rig> {
  const log: string[] = []
  const registry = createMetricsRegistry()
  const upstreams = await startUpstreams(parseUpstreamsOptions({ allowPrivate: true, ...options }), {
    log: createLogger({ level: 'trace', destination: { write: (line: string) => log.push(line) } }),
    clock,
    random: createSeededRandom(7),
    registry,
    env,
    probing,
  })
  return {
    upstreams,
    registry,
    log,
    async [Symbol.asyncDispose]() {
      await upstreams[Symbol.asyncDispose]()
      registry[Symbol.dispose]()
    },
  }
}

/**
 * Moves manual time on in steps, giving the sockets a moment after each, until the condition holds. Answers how much
 * manual time that took.
 */
export async function advanceUntil(
  clock: ManualClock,
  what: string,
  holds: () => boolean,
  { stepMs = 50, withinMs = 120_000 } = {},
): Promise<number> {
  const fromMs = clock.monotonicMs()
  for (;;) {
    if (holds()) return clock.monotonicMs() - fromMs
    const tookMs = clock.monotonicMs() - fromMs
    if (tookMs >= withinMs) assert.fail(`within ${withinMs} ms of manual time it did not become true that ${what}`)
    clock.advance(stepMs)
    await pause(1)
  }
}

export const rpcBody = (method: string, params = '[]') =>
  Buffer.from(`{"jsonrpc":"2.0","id":7,"method":"${method}","params":${params}}`)

export const textOf = (outcome: UpstreamResponse) =>
  outcome.kind === 'responded' ? outcome.body.toString() : outcome.kind
