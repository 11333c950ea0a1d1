import type { Clock } from '../../core/clock.ts'
import type { WaitingWork } from '../../core/work.ts'
import { delay } from '../../platform/process/clock.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'

export type WorkQueue = {
  /** Runs work in slices; undefined when it was stopped by the signal. */
  run<Result>(owner: string, work: WaitingWork<Result>, signal: AbortSignal): Promise<Result | undefined>
}

/** A slice is far below the 50 ms for which a request may block the event loop, so that streams and other requests wait little. */
const SLICE_MS = 5
/** The pause after each slice relative to the slice: all JSON-RPC work together takes at most half of the event loop. */
const PAUSE_SHARE = 1
/** Started work holds its partial output in memory, so further owners wait. */
const STARTED_MAX = 8

type Job = {
  /** Runs one step, or ends work that was stopped. A promise: the work waits for it. */
  step(): 'ended' | Promise<void> | undefined
}

type Owner = { readonly key: string; readonly jobs: Job[]; isWaiting: boolean }

/**
 * One queue for the work of all requests. Owners are served round-robin, one slice each, and the jobs of one owner run sequentially,
 * so that a client with many requests gets no more time than a client with one. An owner whose work waits, for instance for the disk, is left
 * out until the wait is over.
 */
export function createWorkQueue(clock: Clock): WorkQueue {
  /** Owners in round-robin order. Those after the first `STARTED_MAX` have not started. */
  const owners: Owner[] = []
  let current = 0
  let isRunning = false
  /** Set while all started owners wait. */
  let wake: (() => void) | undefined

  async function runAll(): Promise<void> {
    isRunning = true
    const slices = createTimeSlices(clock.monotonicMs, { sliceMs: SLICE_MS })
    // Requests that arrive in this turn of the event loop are queued first.
    await slices.yield()
    let startedMs = clock.monotonicMs()
    while (owners.length > 0) {
      if (!runNext(slices.isSpent)) {
        await changed()
        await slices.yield()
        startedMs = clock.monotonicMs()
        continue
      }
      if (owners.length === 0 || !slices.isSpent()) continue
      await delay(clock, (clock.monotonicMs() - startedMs) * PAUSE_SHARE)
      await slices.yield()
      startedMs = clock.monotonicMs()
    }
    isRunning = false
  }

  /** Runs the next owner's first job until it ends, waits, or the slice is used up. False when all started owners wait. */
  function runNext(isSpent: () => boolean): boolean {
    const next = nextOwner()
    if (next === undefined) return false
    current = next
    const owner = owners[current] as Owner
    const job = owner.jobs[0] as Job
    for (;;) {
      const step = job.step()
      if (step === 'ended') break
      if (step !== undefined) {
        waitFor(owner, step)
        return true
      }
      if (isSpent()) return true
    }
    owner.jobs.shift()
    owners.splice(current, 1)
    // The next job of the same owner waits behind the other owners.
    if (owner.jobs.length > 0) owners.push(owner)
    current -= 1
    return true
  }

  function nextOwner(): number | undefined {
    const started = Math.min(owners.length, STARTED_MAX)
    for (let step = 1; step <= started; step++) {
      const at = (current + step) % started
      if (owners[at]?.isWaiting === false) return at
    }
    return undefined
  }

  function waitFor(owner: Owner, promise: Promise<void>): void {
    owner.isWaiting = true
    void promise.finally(() => {
      owner.isWaiting = false
      wake?.()
    })
  }

  /** Resolves when a wait is over or work was added. */
  function changed(): Promise<void> {
    return new Promise((resolve) => {
      wake = () => {
        wake = undefined
        resolve()
      }
    })
  }

  function add(key: string, job: Job): void {
    const known = owners.find((owner) => owner.key === key)
    if (known === undefined) owners.push({ key, jobs: [job], isWaiting: false })
    else known.jobs.push(job)
    wake?.()
    if (!isRunning) void runAll()
  }

  return {
    run<Result>(owner: string, work: WaitingWork<Result>, signal: AbortSignal) {
      return new Promise<Result | undefined>((resolve, reject) => {
        add(owner, {
          step() {
            try {
              const step = signal.aborted ? work.return(undefined as Result) : work.next()
              if (step.done !== true) return step.value
              resolve(signal.aborted ? undefined : step.value)
              return 'ended'
            } catch (error) {
              reject(error as Error)
              return 'ended'
            }
          },
        })
      })
    },
  }
}
