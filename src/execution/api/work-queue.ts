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
/** Long work holds its partial output in memory, so further long work waits. */
const LONG_MAX = 8
/** Work that was started and has not ended holds what it made in its first slice. */
const STARTED_MAX = 64

type Job = {
  /** Runs one step, or ends work that was stopped. A promise: the work waits for it. */
  step(): 'ended' | Promise<void> | undefined
  isStopped(): boolean
}

type Owner = {
  readonly key: string
  readonly jobs: Job[]
  isWaiting: boolean
  /** How long the first job has run; undefined before it is started. */
  ranMs: number | undefined
}

/**
 * One queue for the work of all requests. Owners are served round-robin, one slice each, and the jobs of one owner run sequentially,
 * so that a client with many requests gets no more time than a client with one. An owner whose work waits, for instance for the disk, is left
 * out until the wait is over. Work that has used up a slice is long: it gets every other slice, so that short work is done soon whatever the
 * owners of long work do.
 */
export function createWorkQueue(clock: Clock): WorkQueue {
  /** Owners whose first job has not used up a slice. */
  const short: Owner[] = []
  /** Owners whose first job has; only the first `LONG_MAX` are served. */
  const long: Owner[] = []
  let isLongSlice = false
  let isRunning = false
  /** Set while all owners that may be served wait. */
  let wake: (() => void) | undefined

  const hasWork = (): boolean => short.length + long.length > 0

  async function runAll(): Promise<void> {
    isRunning = true
    const slices = createTimeSlices(clock.monotonicMs, { sliceMs: SLICE_MS })
    // Requests that arrive in this turn of the event loop are queued first.
    await slices.yield()
    let startedMs = clock.monotonicMs()
    while (hasWork()) {
      if (!runNext(slices.isSpent)) {
        await changed()
        await slices.yield()
        startedMs = clock.monotonicMs()
        continue
      }
      if (!hasWork() || !slices.isSpent()) continue
      isLongSlice = !isLongSlice
      await delay(clock, (clock.monotonicMs() - startedMs) * PAUSE_SHARE)
      await slices.yield()
      startedMs = clock.monotonicMs()
    }
    isRunning = false
  }

  /** Runs the next owner's first job until it ends, waits, or the slice is used up. False when all owners that may be served wait. */
  function runNext(isSpent: () => boolean): boolean {
    const owner = takeNext()
    if (owner === undefined) return false
    const wasLong = isLong(owner)
    const job = owner.jobs[0] as Job
    const startedMs = clock.monotonicMs()
    let step = job.step()
    while (step === undefined && !isSpent()) step = job.step()
    if (step === 'ended') {
      owner.jobs.shift()
      owner.ranMs = undefined
    } else {
      owner.ranMs = (owner.ranMs ?? 0) + clock.monotonicMs() - startedMs
      if (step !== undefined) waitFor(owner, step)
    }
    if (owner.jobs.length === 0) return true
    // Behind the others; long work stays among those that are served.
    if (!isLong(owner)) short.push(owner)
    else long.splice(wasLong ? LONG_MAX - 1 : long.length, 0, owner)
    return true
  }

  function takeNext(): Owner | undefined {
    const started = long.length + short.filter(({ ranMs }) => ranMs !== undefined).length
    const isReady = ({ isWaiting }: Owner): boolean => !isWaiting
    // Stopped work ends in its next step, also behind those that are served.
    const stopped = long.find((owner) => isReady(owner) && owner.jobs[0]?.isStopped() === true)
    const nextLong = stopped ?? long.slice(0, LONG_MAX).find(isReady)
    const nextShort = short.find((owner) => isReady(owner) && (owner.ranMs !== undefined || started < STARTED_MAX))
    const next = isLongSlice ? (nextLong ?? nextShort) : (nextShort ?? nextLong)
    if (next === undefined) return undefined
    const owners = next === nextLong ? long : short
    owners.splice(owners.indexOf(next), 1)
    return next
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
    const known = [...short, ...long].find((owner) => owner.key === key)
    if (known === undefined) short.push({ key, jobs: [job], isWaiting: false, ranMs: undefined })
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
          isStopped: () => signal.aborted,
        })
      })
    },
  }
}

function isLong({ ranMs = 0 }: Owner): boolean {
  return ranMs >= SLICE_MS
}
