import { createBackoff } from '../core/backoff.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { createRollingWindow } from '../core/rolling-window.ts'
import type { BreakerOptions } from './options.ts'

export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * A circuit breaker for one node. It opens after some failures in a row, or when too large a share of recent calls failed. Failed responses that may be
 * due to their calls do not open it while they are those of one or two customers: a probe decides, so that no customer can take the node from all. After a
 * growing delay with jitter it is half-open and requests one probe; only a probe can close it.
 */
export type Breaker = Disposable & {
  readonly state: BreakerState
  /** Records a call. Ignored unless closed: responses to old calls neither close it nor keep it open. */
  record(isGood: boolean, nowMs?: number): void
  /** Records a failed response that may be due to the content of its call. */
  recordDoubtful(failure: DoubtfulFailure, nowMs?: number): void
  recordProbe(isGood: boolean): void
  /** Opens it: the node is known to fail. */
  trip(): void
  /** Closes it: the node failed for all, and responds again. */
  reset(): void
  /** Calls and failures of the last ten seconds. */
  recent(): { readonly calls: number; readonly failures: number }
}

export type DoubtfulFailure = {
  /** A probe decides at once. */
  readonly isLikelyForAll: boolean
  /** Whose call it was, where it was a customer's. */
  readonly customer?: string | undefined
}

export type BreakerDeps = {
  readonly clock: Clock
  readonly random: Random
  /** Requests one probe; its result is given to `recordProbe`. */
  readonly requestProbe: () => void
  readonly onChange?: (state: BreakerState) => void
}

const WINDOW_MS = 10_000
/** Between two probes that decide about doubtful failures, however many there are. */
const DOUBT_MS = 1000
/** A node whose probes succeed and that has failed the calls of so many customers, with no good call between them, fails for all. */
const CUSTOMERS_MIN = 3

export function createBreaker(options: BreakerOptions, deps: BreakerDeps): Breaker {
  const { clock, random } = deps
  const backoff = createBackoff(options, random)
  let calls = createRollingWindow({ windowMs: WINDOW_MS })
  let failures = createRollingWindow({ windowMs: WINDOW_MS })
  let doubtful = createRollingWindow({ windowMs: WINDOW_MS })
  let inRow = 0
  let doubtfulInRow = 0
  /** The next probe decides whether it opens. */
  let isInDoubt = false
  let doubtedAtMs = Number.NEGATIVE_INFINITY
  /** Since the last good call. Good probes do not count: a node may respond to nothing else. */
  const failedCustomers = new Set<string>()
  let failedCalls = 0
  let closedAtMs = Number.NEGATIVE_INFINITY
  let timer: Timer | undefined

  function change(to: BreakerState): void {
    breaker.state = to
    deps.onChange?.(to)
  }

  function open(): void {
    // The delay keeps growing for a node that fails again soon after it recovered.
    if (breaker.state === 'closed' && clock.monotonicMs() - closedAtMs >= WINDOW_MS) backoff.reset()
    isInDoubt = false
    change('open')
    timer = clock.setTimer(backoff.nextMs(), () => {
      change('half-open')
      deps.requestProbe()
    })
    timer.unref?.()
  }

  function forgetFailed(): void {
    failedCustomers.clear()
    failedCalls = 0
  }

  function close(): void {
    inRow = 0
    forgetFailed()
    doubtfulInRow = 0
    calls = createRollingWindow({ windowMs: WINDOW_MS })
    failures = createRollingWindow({ windowMs: WINDOW_MS })
    doubtful = createRollingWindow({ windowMs: WINDOW_MS })
    closedAtMs = clock.monotonicMs()
    change('closed')
  }

  function isShareReached(failed: number, nowMs: number): boolean {
    const total = calls.sum(nowMs)
    return total >= options.failuresShareCalls && failed >= total * options.failuresShare
  }

  function isDoubted(nowMs: number): boolean {
    const failed = failures.sum(nowMs) + doubtful.sum(nowMs)
    return inRow + doubtfulInRow >= options.failuresInRow || isShareReached(failed, nowMs)
  }

  function count(isGood: boolean): void {
    inRow = isGood ? 0 : inRow + 1
    if (isGood) {
      doubtfulInRow = 0
      return
    }
    const nowMs = clock.monotonicMs()
    if (inRow >= options.failuresInRow || isShareReached(failures.sum(nowMs), nowMs)) open()
  }

  const breaker: Breaker & { state: BreakerState } = {
    state: 'closed',
    record(isGood, nowMs = clock.monotonicMs()) {
      if (breaker.state !== 'closed') return
      calls.add(1, nowMs)
      if (!isGood) failures.add(1, nowMs)
      else if (failedCalls > 0) forgetFailed()
      count(isGood)
    },
    recordDoubtful({ isLikelyForAll, customer }, nowMs = clock.monotonicMs()) {
      if (breaker.state !== 'closed') return
      calls.add(1, nowMs)
      doubtful.add(1, nowMs)
      doubtfulInRow += 1
      failedCalls += 1
      if (customer !== undefined && failedCustomers.size < CUSTOMERS_MIN) failedCustomers.add(customer)
      if (failedCustomers.size === CUSTOMERS_MIN && failedCalls >= options.failuresInRow) return open()
      if (isInDoubt || nowMs - doubtedAtMs < DOUBT_MS || !(isLikelyForAll || isDoubted(nowMs))) return
      isInDoubt = true
      doubtedAtMs = nowMs
      deps.requestProbe()
    },
    recordProbe(isGood) {
      if (breaker.state === 'closed') {
        if (isInDoubt && !isGood) open()
        else count(isGood)
        isInDoubt = false
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
      return { calls: calls.sum(nowMs), failures: failures.sum(nowMs) + doubtful.sum(nowMs) }
    },
    [Symbol.dispose]: () => timer?.cancel(),
  }
  return breaker
}
