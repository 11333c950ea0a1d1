import type { Clock, Timer } from '../core/clock.ts'
import { type Random, randomInt } from '../core/random.ts'
import type { HttpOutcome } from '../platform/http/client/exchange.ts'
import { isJsonRpcBody, slotResultOf } from './extract-slot.ts'
import type { UpstreamNode } from './node.ts'
import type { HealthOptions } from './options.ts'

const SLOT = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[{"commitment":"processed"}]}')
const SHRED_SLOT = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getMaxShredInsertSlot"}')
const SAMPLES = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getRecentPerformanceSamples","params":[1]}')
/** Fewer slots in a sample say little about their length. */
const SAMPLE_SLOTS_MIN = 10

export type ProbeDeps = {
  readonly clock: Clock
  readonly random: Random
  /** The node's slot moved. */
  readonly onSlot: () => void
  /** The length of a slot by the node's own statistics. */
  readonly onSlotLength: (ms: number) => void
}

/**
 * Reads a node's slot and newest shred slot periodically, and at once when its breaker is half-open. While the breaker is open there are
 * no periodic probes. Its statistics are read once, for the length of a slot before slots were observed. A node that responds neither to a probe nor to a call for `silentMs` is silent. Two POSTs rather than one batch: not every node accepts batches.
 */
export function startProbes(
  node: UpstreamNode,
  options: HealthOptions,
  { clock, random, onSlot, onSlotLength }: ProbeDeps,
): Disposable {
  const { http } = node
  if (http === undefined) return { [Symbol.dispose]() {} }
  let isProbing = false
  let hasSamples = false
  let silence: Timer | undefined
  let isClosed = false

  function call(body: Uint8Array, done: (outcome: HttpOutcome) => void): void {
    http?.call({ body, deadlineMs: options.probeTimeoutMs }, (outcome) => {
      if (outcome.kind === 'reply') node.heard(clock.monotonicMs())
      if (isClosed) {
        if (outcome.kind === 'reply') outcome.rest?.abort()
      } else done(outcome)
    })
  }

  function probe(): void {
    if (isProbing || isClosed) return
    isProbing = true
    const startedMs = clock.monotonicMs()
    silence = clock.setTimer(options.silentMs, () => {
      if (node.heardAtMs < startedMs) node.markSilent(options.silentMs)
    })
    silence.unref?.()
    call(SLOT, (outcome) => {
      isProbing = false
      silence?.cancel()
      const isGood = isAlive(outcome)
      if (isGood) node.responded(clock.monotonicMs() - startedMs)
      else node.lastFailure = outcome.kind === 'reply' ? `HTTP ${outcome.head.status}` : outcome.message
      const slot = slotOf(outcome)
      // The slot first, so that a node that recovers is compared by its current slot.
      if (slot !== undefined && node.health.reportedHead(slot)) onSlot()
      if (slot !== undefined) readSamples()
      node.breaker.recordProbe(isGood)
    })
    // A node without this method has no shred lag.
    call(SHRED_SLOT, (outcome) => {
      const slot = slotOf(outcome)
      if (slot !== undefined && node.health.reportedShredSlot(slot)) onSlot()
    })
  }

  function readSamples(): void {
    if (hasSamples) return
    hasSamples = true
    call(SAMPLES, (outcome) => {
      if (outcome.kind !== 'reply') return
      outcome.rest?.abort()
      const ms = outcome.head.status === 200 ? sampledSlotMs(outcome.body) : undefined
      if (ms !== undefined) onSlotLength(ms)
    })
  }

  node.onHalfOpen = probe
  // A random start spreads the probes of different nodes.
  let timer = clock.setTimer(randomInt(random, options.probeMs), () => {
    timer = clock.setRepeating(options.probeMs, () => {
      if (node.breaker.state === 'closed') probe()
    })
    timer.unref?.()
  })
  timer.unref?.()
  probe()
  return {
    [Symbol.dispose]() {
      isClosed = true
      silence?.cancel()
      timer.cancel()
    },
  }
}

/** Any JSON-RPC response counts, an error too. */
function isAlive(outcome: HttpOutcome): boolean {
  return outcome.kind === 'reply' && outcome.head.status === 200 && isJsonRpcBody(outcome.body)
}

function sampledSlotMs(body: Buffer): number | undefined {
  try {
    return slotMsOfSamples((JSON.parse(body.toString()) as { result?: unknown } | null)?.result)
  } catch {
    return undefined
  }
}

/** The length of a slot by the result of getRecentPerformanceSamples; undefined where a node has none. */
export function slotMsOfSamples(samples: unknown): number | undefined {
  const sample = (Array.isArray(samples) ? samples[0] : undefined) as Record<string, unknown> | null | undefined
  const { numSlots, samplePeriodSecs } = sample ?? {}
  if (typeof numSlots !== 'number' || typeof samplePeriodSecs !== 'number') return undefined
  return numSlots >= SAMPLE_SLOTS_MIN && samplePeriodSecs > 0 ? (samplePeriodSecs * 1000) / numSlots : undefined
}

function slotOf(outcome: HttpOutcome): number | undefined {
  if (outcome.kind !== 'reply') return undefined
  outcome.rest?.abort()
  return outcome.head.status === 200 ? slotResultOf(outcome.body) : undefined
}
