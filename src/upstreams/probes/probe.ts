import type { Clock, Timer } from '../../core/clock.ts'
import { type Random, randomInt } from '../../core/random.ts'
import type { HttpOutcome } from '../../platform/http/client/exchange.ts'
import { isJsonRpcBody, slotResultOf } from '../extract-slot.ts'
import type { UpstreamNode } from '../node.ts'
import type { HealthOptions } from '../options.ts'

const SLOT = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[{"commitment":"processed"}]}')
const SHRED_SLOT = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getMaxShredInsertSlot"}')
const SAMPLES = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getRecentPerformanceSamples","params":[1]}')
/** Fewer slots in a sample say little about their length. */
const SAMPLE_SLOTS_MIN = 10

/** What a probe has found out about a node: plain data, which the thread that probes can post to the others. */
export type ProbeResult =
  /** A response to `getSlot`. `isBack`: until now its probes had failed. */
  | { readonly kind: 'alive'; readonly tookMs: number; readonly slot: number | undefined; readonly isBack: boolean }
  | { readonly kind: 'shred-slot'; readonly slot: number | undefined }
  /** The length of a slot by the node's own statistics. */
  | { readonly kind: 'slot-length'; readonly ms: number }
  | { readonly kind: 'failed'; readonly reason: string; readonly hasResponded: boolean }
  /** Nothing was heard of it for `silentMs`, in which a probe was in flight. */
  | { readonly kind: 'silent'; readonly silentMs: number }
  /** All that is known of it, for a thread that begins to use it. */
  | {
      readonly kind: 'known'
      readonly slot: number
      readonly shredSlot: number
      readonly latencyMs: number | undefined
      readonly slotMs: number | undefined
      /** Its probes fail. */
      readonly isOut: boolean
      /** Undefined unless it is silent. */
      readonly silentMs: number | undefined
      readonly failure: string
    }

export type ProbeDeps = {
  readonly clock: Clock
  readonly random: Random
  /** The node's slot moved. */
  readonly onSlot: () => void
  /** The length of a slot by the node's own statistics. */
  readonly onSlotLength: (ms: number) => void
  /** A probe is sent. */
  readonly onProbe?: () => void
  /** Called before the result is applied here. */
  readonly onResult?: (result: ProbeResult) => void
}

export type Probes = Disposable & {
  /** Probes now, unless a probe is in flight. */
  probe(): void
}

/** A node without JSON-RPC is not probed. */
export const NO_PROBES: Probes = { probe() {}, [Symbol.dispose]() {} }

/**
 * Reads a node's slot and newest shred slot periodically.
 * While its breaker is open there are no periodic probes; once it is half-open, its pool requests one.
 * A node that responds neither to a probe nor to a call for `silentMs` is silent.
 * Its statistics are read once, for the length of a slot before slots were observed.
 * Two POSTs rather than one batch: not every node accepts batches.
 */
export function startProbes(
  node: UpstreamNode,
  options: HealthOptions,
  { clock, random, onSlot, onSlotLength, onProbe, onResult }: ProbeDeps,
): Probes {
  const http = node.openProbeHttp()
  if (http === undefined) return NO_PROBES
  let isProbing = false
  let hasSamples = false
  let silence: Timer | undefined
  let isClosed = false

  function call(body: Uint8Array, done: (outcome: HttpOutcome) => void): void {
    http?.call({ body, deadlineMs: options.probeTimeoutMs }, (outcome) => {
      if (isClosed) {
        if (outcome.kind === 'reply') outcome.rest?.abort()
      } else done(outcome)
    })
  }

  function found(result: ProbeResult): void {
    onResult?.(result)
    applyProbeResult(node, result, { nowMs: clock.monotonicMs(), onSlot, onSlotLength })
  }

  /** Until the probe has ended: the node may become silent after a response to something else, in this thread or in another. */
  function watchSilence(startedMs: number, delayMs: number): void {
    silence = clock.setTimer(delayMs, () => {
      const { silentMs } = options
      const quietMs = clock.monotonicMs() - Math.max(startedMs, node.heardAtMs)
      const isSilent = quietMs >= silentMs
      // At least a millisecond: what is left may be a fraction that time is too coarse for.
      watchSilence(startedMs, isSilent ? silentMs : Math.ceil(silentMs - quietMs))
      if (isSilent) found({ kind: 'silent', silentMs })
    })
    silence.unref?.()
  }

  function probe(): void {
    if (isProbing || isClosed) return
    isProbing = true
    onProbe?.()
    const startedMs = clock.monotonicMs()
    watchSilence(startedMs, options.silentMs)
    call(SLOT, (outcome) => {
      isProbing = false
      silence?.cancel()
      const slot = slotOf(outcome)
      if (!isAlive(outcome)) return found(failureOf(outcome))
      const isBack = node.breaker.state === 'half-open'
      if (slot !== undefined) readSamples()
      found({ kind: 'alive', tookMs: clock.monotonicMs() - startedMs, slot, isBack })
    })
    // A node without this method has no shred lag.
    call(SHRED_SLOT, (outcome) => {
      const slot = slotOf(outcome)
      if (outcome.kind === 'reply') found({ kind: 'shred-slot', slot })
    })
  }

  function readSamples(): void {
    if (hasSamples) return
    hasSamples = true
    call(SAMPLES, (outcome) => {
      if (outcome.kind !== 'reply') return
      outcome.rest?.abort()
      const ms = outcome.head.status === 200 ? sampledSlotMs(outcome.body) : undefined
      if (ms !== undefined) found({ kind: 'slot-length', ms })
    })
  }

  function probeClosed(): void {
    if (node.breaker.state === 'closed') probe()
  }

  // A random start spreads the probes of different nodes.
  let timer = clock.setTimer(randomInt(random, options.probeMs), () => {
    probeClosed()
    timer = clock.setRepeating(options.probeMs, probeClosed)
    timer.unref?.()
  })
  timer.unref?.()
  probe()
  return {
    probe,
    [Symbol.dispose]() {
      isClosed = true
      silence?.cancel()
      timer.cancel()
      http[Symbol.dispose]()
    },
  }
}

type ApplyDeps = {
  readonly nowMs: number
  /** The node's slot moved. */
  readonly onSlot: () => void
  /** The length of a slot by the node's own statistics. */
  readonly onSlotLength: (ms: number) => void
}

/** Updates health and breaker of the node, in the thread that probes and in those that receive its results. */
export function applyProbeResult(
  node: UpstreamNode,
  result: ProbeResult,
  { nowMs, onSlot, onSlotLength }: ApplyDeps,
): void {
  const { health, breaker } = node
  switch (result.kind) {
    case 'alive':
      node.recordHeard(nowMs)
      node.recordLatency(result.tookMs)
      // The slot first, so that a node that recovers is compared by its current slot.
      if (result.slot === undefined ? health.recordNoSlot() : health.recordReportedSlot(result.slot)) onSlot()
      if (result.isBack) breaker.reset()
      else breaker.recordProbe(true)
      return
    case 'shred-slot':
      node.recordHeard(nowMs)
      if (result.slot !== undefined && health.recordShredSlot(result.slot)) onSlot()
      return
    case 'slot-length':
      onSlotLength(result.ms)
      return
    case 'failed':
      if (result.hasResponded) node.recordHeard(nowMs)
      node.setLastFailure(result.reason)
      breaker.recordProbe(false)
      return
    case 'silent':
      // This thread may have had a response to a call meanwhile.
      if (node.heardAtMs <= nowMs - result.silentMs) node.markSilent(result.silentMs)
      return
    case 'known':
      if (result.latencyMs !== undefined) node.recordLatency(result.latencyMs)
      health.recordReportedSlot(result.slot)
      health.recordShredSlot(result.shredSlot)
      if (result.slotMs !== undefined) onSlotLength(result.slotMs)
      onSlot()
      if (result.isOut || result.silentMs !== undefined) node.setLastFailure(result.failure)
      if (result.silentMs !== undefined) node.markSilent(result.silentMs)
      if (result.isOut) breaker.trip()
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

function failureOf(outcome: HttpOutcome): ProbeResult {
  return outcome.kind === 'reply'
    ? { kind: 'failed', reason: `HTTP ${outcome.head.status}`, hasResponded: true }
    : { kind: 'failed', reason: outcome.message, hasResponded: false }
}

function slotOf(outcome: HttpOutcome): number | undefined {
  if (outcome.kind !== 'reply') return undefined
  outcome.rest?.abort()
  return outcome.head.status === 200 ? slotResultOf(outcome.body) : undefined
}
