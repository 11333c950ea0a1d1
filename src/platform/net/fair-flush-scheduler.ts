import type { Clock } from '../../core/clock.ts'
import { JoinedFrames } from '../ws/frame.ts'

/** Somebody with frames to write. */
export type FlushWriter = {
  /** Writes all that is due at this moment, in one write. */
  flush(joined: JoinedFrames): void
}

export type FairFlushScheduler = {
  /** Gets its turn soon. Called once until then. */
  add(writer: FlushWriter): void
}

/**
 * Writing costs by the write, not by the message. After a round of writes to many sockets there is a rest, so that what comes meanwhile leaves
 * together with the next; a round to few is over at once and is followed by none.
 */
const REST_SHARE = 0.5
const REST_MS_MAX = 10
/** A round is interrupted so often, so that what comes meanwhile is read, and leaves with the writes that are still ahead. */
const SLICE_MS = 2
/** Writers between two looks at the clock. */
const LOOK_EVERY = 16

/**
 * Writes in rounds, one write for each writer and round. Since a round lets others take their turn within it, a message waits a round at most,
 * wherever in it its socket stands, and nothing else waits longer than a slice.
 */
export function createFairFlushScheduler(
  clock: Clock,
  defer: (run: () => void) => void = setImmediate,
): FairFlushScheduler {
  let upcoming: FlushWriter[] = []
  let current: FlushWriter[] = []
  let at = 0
  let writingMs = 0
  let restUntilMs = 0
  let joined = new JoinedFrames()

  function beginSoon(): void {
    const restMs = restUntilMs - clock.monotonicMs()
    if (restMs < 1) defer(begin)
    else clock.setTimer(restMs, begin)
  }

  function begin(): void {
    const spent = current
    current = upcoming
    spent.length = 0
    upcoming = spent
    at = 0
    writingMs = 0
    goOn()
  }

  function goOn(): void {
    const beganMs = clock.monotonicMs()
    let nowMs = beganMs
    while (at < current.length && nowMs - beganMs < SLICE_MS) {
      const until = Math.min(current.length, at + LOOK_EVERY)
      for (; at < until; at++) (current[at] as FlushWriter).flush(joined)
      nowMs = clock.monotonicMs()
    }
    writingMs += nowMs - beganMs
    if (at < current.length) {
      defer(goOn)
      return
    }
    current.length = 0
    joined = new JoinedFrames()
    restUntilMs = nowMs + Math.min(REST_MS_MAX, writingMs * REST_SHARE)
    if (upcoming.length > 0) beginSoon()
  }

  return {
    add(writer) {
      const isIdle = upcoming.push(writer) === 1 && current.length === 0
      if (isIdle) beginSoon()
    },
  }
}
