import { createBackoff } from '../core/backoff.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { createRollingWindow } from '../core/rolling-window.ts'
import type { BreakerOptions } from './options.ts'

export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * A circuit breaker for one node. It opens after some failures in a row, or when too large a share of recent calls failed. After a
 * growing delay with jitter it is half-open and requests one probe; only a probe can close it.
 */
export type Breaker = Disposable & {
  readonly state: BreakerState
  /** Records a call. Ignored unless closed: responses to old calls neither close it nor keep it open. */
  record(isGood: boolean, nowMs?: number): void
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
  readonly onHalfOpen: () => void
  readonly onChange?: (state: BreakerState) => void
}

const WINDOW_MS = 10_000

export function createBreaker(options: BreakerOptions, deps: BreakerDeps): Breaker {
  const { clock, random } = deps
  const backoff = createBackoff(options, random)
  let calls = createRollingWindow({ windowMs: WINDOW_MS })
  let failures = createRollingWindow({ windowMs: WINDOW_MS })
  let inRow = 0
  let closedAtMs = Number.NEGATIVE_INFINITY
  let timer: Timer | undefined

  function change(to: BreakerState): void {
    breaker.state = to
    deps.onChange?.(to)
  }

  function open(): void {
    // The delay keeps growing for a node that fails again soon after it recovered.
    if (breaker.state === 'closed' && clock.monotonicMs() - closedAtMs >= WINDOW_MS) backoff.reset()
    change('open')
    timer = clock.setTimer(backoff.nextMs(), () => {
      change('half-open')
      deps.onHalfOpen()
    })
    timer.unref?.()
  }

  function close(): void {
    inRow = 0
    calls = createRollingWindow({ windowMs: WINDOW_MS })
    failures = createRollingWindow({ windowMs: WINDOW_MS })
    closedAtMs = clock.monotonicMs()
    change('closed')
  }

  function isShareReached(nowMs: number): boolean {
    const total = calls.sum(nowMs)
    return total >= options.failuresShareCalls && failures.sum(nowMs) >= total * options.failuresShare
  }

  function count(isGood: boolean): void {
    inRow = isGood ? 0 : inRow + 1
    if (!isGood && (inRow >= options.failuresInRow || isShareReached(clock.monotonicMs()))) open()
  }

  const breaker: Breaker & { state: BreakerState } = {
    state: 'closed',
    record(isGood, nowMs = clock.monotonicMs()) {
      if (breaker.state !== 'closed') return
      calls.add(1, nowMs)
      if (!isGood) failures.add(1, nowMs)
      count(isGood)
    },
    recordProbe(isGood) {
      if (breaker.state === 'closed') count(isGood)
      else if (breaker.state === 'half-open') {
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
      return { calls: calls.sum(nowMs), failures: failures.sum(nowMs) }
    },
    [Symbol.dispose]: () => timer?.cancel(),
  }
  return breaker
}
