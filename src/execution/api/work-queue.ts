import type { Clock } from '../../core/clock.ts'
import type { Work } from '../../core/work.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'

export type WorkQueue = {
  /** Runs work in slices; undefined when it was stopped by the signal. */
  run<Result>(owner: string, work: Work<Result>, signal: AbortSignal): Promise<Result | undefined>
}

/** A slice is short beside the 50 ms that no request may hold the event loop, so that streams and other services wait little. */
const SLICE_MS = 5
/** A rest after each slice, as long as the slice: all JSON-RPC work together takes at most half of the event loop. */
const REST_SHARE = 1
/** Started works hold what they have produced so far; further owners wait for their turn. */
const STARTED_MAX = 8

type Job = {
  /** One step, or the end of a work that was stopped; true when the work has ended. */
  step(): boolean
}

/**
 * One queue for the work of all requests. Owners take turns, one slice each, and the works of one owner run one after
 * the other, so that a client with many requests gets no more than a client with one.
 */
export function createWorkQueue(clock: Clock): WorkQueue {
  /** Owners in the order of their turns. Those behind the first `STARTED_MAX` have not started. */
  const owners: { readonly key: string; readonly jobs: Job[] }[] = []
  let turn = 0
  let isRunning = false

  async function runAll(): Promise<void> {
    isRunning = true
    const slices = createTimeSlices(clock.monotonicMs, { sliceMs: SLICE_MS })
    // What arrives in this turn of the event loop is queued first.
    await slices.yield()
    let startedMs = clock.monotonicMs()
    while (owners.length > 0) {
      runTurn(slices.isSpent)
      if (owners.length === 0 || !slices.isSpent()) continue
      await rest((clock.monotonicMs() - startedMs) * REST_SHARE)
      await slices.yield()
      startedMs = clock.monotonicMs()
    }
    isRunning = false
  }

  /** Runs the next owner's first work until it ends or the slice is spent. */
  function runTurn(isSpent: () => boolean): void {
    turn = (turn + 1) % Math.min(owners.length, STARTED_MAX)
    const owner = owners[turn] as (typeof owners)[number]
    const job = owner.jobs[0] as Job
    while (!job.step()) if (isSpent()) return
    owner.jobs.shift()
    owners.splice(turn, 1)
    // The next work of the same owner waits behind the other owners.
    if (owner.jobs.length > 0) owners.push(owner)
    turn -= 1
  }

  function rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      clock.setTimer(ms, resolve)
    })
  }

  function add(key: string, job: Job): void {
    const known = owners.find((owner) => owner.key === key)
    if (known === undefined) owners.push({ key, jobs: [job] })
    else known.jobs.push(job)
    if (!isRunning) void runAll()
  }

  return {
    run<Result>(owner: string, work: Work<Result>, signal: AbortSignal) {
      return new Promise<Result | undefined>((resolve, reject) => {
        add(owner, {
          step() {
            try {
              const step = signal.aborted ? work.return(undefined as Result) : work.next()
              if (step.done === true) resolve(signal.aborted ? undefined : step.value)
              return step.done === true
            } catch (error) {
              reject(error as Error)
              return true
            }
          },
        })
      })
    },
  }
}
