import { createBackoff } from '../core/backoff.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { createRollingWindow } from '../core/rolling-window.ts'
import type { BreakerOptions } from './options.ts'

export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * A circuit breaker for one node. It opens after some failures in a row, or when too large a share of recent calls failed. Failed responses that may be
 * due to their calls do not open it: a probe decides, so that no customer can take the node from all. While the probes succeed such a node is suspect,
 * and others that are equal are used first. After a growing delay with jitter it is half-open and requests one probe; only a probe can close it.
 */
export type Breaker = Disposable & {
  readonly state: BreakerState
  /** It fails many calls, though its probes succeed; for ten seconds each time. */
  readonly isSuspect: boolean
  /** Records a call. Ignored unless closed: responses to old calls neither close it nor keep it open. */
  record(isGood: boolean, nowMs?: number): void
  /** Records a failed response that may be due to the content of its call. Where that is not likely, a probe decides at once. */
  recordAmbiguousFailure(isLikelyNodeFault: boolean, nowMs?: number): void
  recordProbe(isGood: boolean): void
  /** Opens it: the node is known to fail. */
  trip(): void
  /** Closes it: the node failed for all, and responds again. */
  reset(): void
  /** Calls and failures of the last ten seconds. */
  recent(): { readonly calls: number; readonly failures: number }
}

export type BreakerDeps = {
  readonly clock: Clock
  readonly random: Random
  /** Requests one probe; its result is given to `recordProbe`. */
  readonly requestProbe: () => void
  /** `state` or `isSuspect` has changed. */
  readonly onChange?: () => void
}

const WINDOW_MS = 10_000
/** Between two probes that decide about ambiguous failures, however many there are. */
const DECIDING_PROBE_INTERVAL_MS = 1000

export function createBreaker(options: BreakerOptions, deps: BreakerDeps): Breaker {
  const { clock, random } = deps
  const backoff = createBackoff(options, random)
  let calls = createRollingWindow({ windowMs: WINDOW_MS })
  let failures = createRollingWindow({ windowMs: WINDOW_MS })
  let ambiguous = createRollingWindow({ windowMs: WINDOW_MS })
  let inRow = 0
  let ambiguousInRow = 0
  /** The next probe decides whether it opens. */
  let isDecidingProbePending = false
  let decidingProbeAtMs = Number.NEGATIVE_INFINITY
  let closedAtMs = Number.NEGATIVE_INFINITY
  let timer: Timer | undefined
  let suspectTimer: Timer | undefined

  function change(to: BreakerState): void {
    breaker.state = to
    deps.onChange?.()
  }

  function open(): void {
    // The delay keeps growing for a node that fails again soon after it recovered.
    if (breaker.state === 'closed' && clock.monotonicMs() - closedAtMs >= WINDOW_MS) backoff.reset()
    isDecidingProbePending = false
    change('open')
    timer = clock.setTimer(backoff.nextMs(), () => {
      change('half-open')
      deps.requestProbe()
    })
    timer.unref?.()
  }

  function close(): void {
    inRow = 0
    ambiguousInRow = 0
    calls = createRollingWindow({ windowMs: WINDOW_MS })
    failures = createRollingWindow({ windowMs: WINDOW_MS })
    ambiguous = createRollingWindow({ windowMs: WINDOW_MS })
    closedAtMs = clock.monotonicMs()
    change('closed')
  }

  function isShareReached(failed: number, nowMs: number): boolean {
    const total = calls.sum(nowMs)
    return total >= options.failuresShareCalls && failed >= total * options.failuresShare
  }

  function reachesLimit(nowMs: number): boolean {
    const failed = failures.sum(nowMs) + ambiguous.sum(nowMs)
    return inRow + ambiguousInRow >= options.failuresInRow || isShareReached(failed, nowMs)
  }

  function count(isGood: boolean): void {
    inRow = isGood ? 0 : inRow + 1
    if (isGood) {
      ambiguousInRow = 0
      return
    }
    const nowMs = clock.monotonicMs()
    if (inRow >= options.failuresInRow || isShareReached(failures.sum(nowMs), nowMs)) open()
  }

  /** Marks the node as suspect for `WINDOW_MS`: other nodes are picked first. Afterwards the next failures decide again. */
  function markSuspect(): void {
    if (breaker.isSuspect) return
    breaker.isSuspect = true
    suspectTimer = clock.setTimer(WINDOW_MS, clearSuspect)
    suspectTimer.unref?.()
    deps.onChange?.()
  }

  function clearSuspect(): void {
    breaker.isSuspect = false
    ambiguousInRow = 0
    ambiguous = createRollingWindow({ windowMs: WINDOW_MS })
    deps.onChange?.()
  }

  const breaker: Breaker & { state: BreakerState; isSuspect: boolean } = {
    state: 'closed',
    isSuspect: false,
    record(isGood, nowMs = clock.monotonicMs()) {
      if (breaker.state !== 'closed') return
      calls.add(1, nowMs)
      if (!isGood) failures.add(1, nowMs)
      count(isGood)
    },
    recordAmbiguousFailure(isLikelyNodeFault, nowMs = clock.monotonicMs()) {
      if (breaker.state !== 'closed') return
      calls.add(1, nowMs)
      ambiguous.add(1, nowMs)
      ambiguousInRow += 1
      const isLimitReached = reachesLimit(nowMs)
      if (isLimitReached) markSuspect()
      if (!isLikelyNodeFault && !isLimitReached) return
      if (isDecidingProbePending || nowMs - decidingProbeAtMs < DECIDING_PROBE_INTERVAL_MS) return
      isDecidingProbePending = true
      decidingProbeAtMs = nowMs
      deps.requestProbe()
    },
    recordProbe(isGood) {
      if (breaker.state === 'closed') {
        // A good probe does not end a row of ambiguous failures: the node may respond well to nothing else.
        if (isGood) inRow = 0
        else if (isDecidingProbePending) open()
        else count(false)
        isDecidingProbePending = false
      } else if (breaker.state === 'half-open') {
        if (isGood) close()
        else open()
      }
    },
    trip() {
      if (breaker.state === 'closed') open()
    },
    reset() {
      if (breaker.state === 'closed') return
      timer?.cancel()
      close()
    },
    recent() {
      const nowMs = clock.monotonicMs()
      return { calls: calls.sum(nowMs), failures: failures.sum(nowMs) + ambiguous.sum(nowMs) }
    },
    [Symbol.dispose]() {
      timer?.cancel()
      suspectTimer?.cancel()
    },
  }
  return breaker
}
