import type { Clock } from '../../core/clock.ts'
import { JoinedFrames } from '../ws/frame.ts'

/** Has frames to write. */
export type FlushWriter = {
  /** Writes all frames that wait, in one write. */
  flush(joined: JoinedFrames): void
}

export type FairFlushScheduler = {
  /** Flushes the writer soon. Called once until then. */
  add(writer: FlushWriter): void
}

/**
 * A write costs by the call, not by the message. After a pass over many sockets the scheduler pauses for a share of the time that the pass took, so
 * that messages of the meantime leave in one write; a pass over few sockets takes no time and has no pause.
 */
const PAUSE_SHARE = 0.5
const PAUSE_MS_MAX = 10
/** After this long a pass yields to the event loop, so that new messages are read and leave with the writes that are still to come. */
const SLICE_MS = 2
/** Writers between two reads of the clock. */
const CLOCK_EVERY = 16

/**
 * Flushes writers in passes, each writer once a pass. A message waits for one pass at most, wherever its socket is in it, and other work of the event
 * loop for one slice at most.
 */
export function createFairFlushScheduler(
  clock: Clock,
  defer: (run: () => void) => void = setImmediate,
): FairFlushScheduler {
  let upcoming: FlushWriter[] = []
  let current: FlushWriter[] = []
  let index = 0
  let writingMs = 0
  let pauseUntilMs = 0
  let joined = new JoinedFrames()

  function schedulePass(): void {
    const pauseMs = pauseUntilMs - clock.monotonicMs()
    if (pauseMs < 1) defer(beginPass)
    else clock.setTimer(pauseMs, beginPass)
  }

  function beginPass(): void {
    const spent = current
    current = upcoming
    spent.length = 0
    upcoming = spent
    index = 0
    writingMs = 0
    runSlice()
  }

  function runSlice(): void {
    const beganMs = clock.monotonicMs()
    let nowMs = beganMs
    while (index < current.length && nowMs - beganMs < SLICE_MS) {
      const until = Math.min(current.length, index + CLOCK_EVERY)
      for (; index < until; index++) (current[index] as FlushWriter).flush(joined)
      nowMs = clock.monotonicMs()
    }
    writingMs += nowMs - beganMs
    if (index < current.length) {
      defer(runSlice)
      return
    }
    current.length = 0
    joined = new JoinedFrames()
    pauseUntilMs = nowMs + Math.min(PAUSE_MS_MAX, writingMs * PAUSE_SHARE)
    if (upcoming.length > 0) schedulePass()
  }

  return {
    add(writer) {
      const isIdle = upcoming.push(writer) === 1 && current.length === 0
      if (isIdle) schedulePass()
    },
  }
}
