import type { Clock } from '../core/clock.ts'
import { type Random, randomInt } from '../core/random.ts'
import type { HttpOutcome } from '../platform/http/client/exchange.ts'
import { isJsonRpcBody, slotResultOf } from './extract-slot.ts'
import type { UpstreamNode } from './node.ts'
import type { HealthOptions } from './options.ts'

const HEAD = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[{"commitment":"processed"}]}')
const SHREDS = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getMaxShredInsertSlot"}')

export type ProbeDeps = {
  readonly clock: Clock
  readonly random: Random
  /** The node's slot moved. */
  readonly onSlot: () => void
}

/**
 * Asks a node for its head and for its newest shred, again and again, and at once when its breaker wants to know. While
 * the breaker is open nothing is asked in between. Two posts rather than one batch: not every node takes batches.
 */
export function startProbes(
  node: UpstreamNode,
  options: HealthOptions,
  { clock, random, onSlot }: ProbeDeps,
): Disposable {
  const { http } = node
  if (http === undefined) return { [Symbol.dispose]() {} }
  let isAsking = false
  let isClosed = false

  function ask(body: Uint8Array, reported: (outcome: HttpOutcome) => void): void {
    http?.call({ body, deadlineMs: options.probeTimeoutMs }, (outcome) => {
      if (isClosed) {
        if (outcome.kind === 'reply') outcome.rest?.abort()
      } else reported(outcome)
    })
  }

  function probe(): void {
    if (isAsking || isClosed) return
    isAsking = true
    const startedMs = clock.monotonicMs()
    ask(HEAD, (outcome) => {
      isAsking = false
      const isGood = isAlive(outcome)
      if (isGood) node.responded(clock.monotonicMs() - startedMs)
      else node.lastFailure = outcome.kind === 'reply' ? `HTTP ${outcome.head.status}` : outcome.message
      const slot = slotOf(outcome)
      // The slot first: a node that comes back is judged by where it is now.
      if (slot !== undefined && node.health.reportedHead(slot)) onSlot()
      node.breaker.recordProbe(isGood)
    })
    // A node that does not know the method has no shred lag that could count against it.
    ask(SHREDS, (outcome) => {
      const slot = slotOf(outcome)
      if (slot !== undefined && node.health.reportedShredSlot(slot)) onSlot()
    })
  }

  node.onHalfOpen = probe
  // Nodes are asked at different moments of the period.
  let repeating = clock.setTimer(randomInt(random, options.probeMs), () => {
    repeating = clock.setRepeating(options.probeMs, () => {
      if (node.breaker.state === 'closed') probe()
    })
    repeating.unref?.()
  })
  repeating.unref?.()
  probe()
  return {
    [Symbol.dispose]() {
      isClosed = true
      repeating.cancel()
    },
  }
}

/** Any answer in JSON-RPC is a sign of life, an error too. */
function isAlive(outcome: HttpOutcome): boolean {
  return outcome.kind === 'reply' && outcome.head.status === 200 && isJsonRpcBody(outcome.body)
}

function slotOf(outcome: HttpOutcome): number | undefined {
  if (outcome.kind !== 'reply') return undefined
  outcome.rest?.abort()
  return outcome.head.status === 200 ? slotResultOf(outcome.body) : undefined
}
