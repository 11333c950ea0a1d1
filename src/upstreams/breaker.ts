import { createBackoff } from '../core/backoff.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { createRollingWindow } from '../core/rolling-window.ts'
import type { BreakerOptions } from './options.ts'

export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * Leaves a failing node alone. It opens after some failures in a row, or when too large a share of recent calls failed;
 * then, after a delay that grows and is partly chance, it asks for one probe, and only a probe can close it.
 */
export type Breaker = Disposable & {
  readonly state: BreakerState
  /** What became of a call. Only heeded while closed: answers to old calls do not close it, nor do they keep it open. */
  record(isGood: boolean, nowMs?: number): void
  /** What became of a probe. */
  recordProbe(isGood: boolean): void
  /** Calls and failures of the last ten seconds. */
  recent(): { readonly calls: number; readonly failures: number }
}

export type BreakerDeps = {
  readonly clock: Clock
  readonly random: Random
  /** Half-open: one probe is wanted now, and its outcome told by `recordProbe`. */
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
    // A node that fails again soon after it came back is trusted less; one that held out begins anew.
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

  function note(isGood: boolean): void {
    inRow = isGood ? 0 : inRow + 1
    if (!isGood && (inRow >= options.failuresInRow || isShareReached(clock.monotonicMs()))) open()
  }

  const breaker: Breaker & { state: BreakerState } = {
    state: 'closed',
    record(isGood, nowMs = clock.monotonicMs()) {
      if (breaker.state !== 'closed') return
      calls.add(1, nowMs)
      if (!isGood) failures.add(1, nowMs)
      note(isGood)
    },
    recordProbe(isGood) {
      if (breaker.state === 'closed') note(isGood)
      else if (breaker.state === 'half-open') {
        if (isGood) close()
        else open()
      }
    },
    recent() {
      const nowMs = clock.monotonicMs()
      return { calls: calls.sum(nowMs), failures: failures.sum(nowMs) }
    },
    [Symbol.dispose]: () => timer?.cancel(),
  }
  return breaker
}
