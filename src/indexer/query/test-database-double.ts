import type { Clock } from '../../core/clock.ts'
import { StoreGone, type StoreProcess } from '../store/process.ts'
import type { QueryResponse, StoreRequest } from '../store/protocol.ts'
import type { QueryJob } from './request.ts'

/** Effect of a query on the database process. */
export type QueryProfile = {
  readonly ms: number
  readonly bytes: number
  /** When it allocates the memory. */
  readonly afterMs?: number
  /** It cannot be interrupted. */
  readonly isStuck?: boolean
  /** Its process does not respond to an interrupt either. */
  readonly blocksProcess?: boolean
  /** The process crashes after this long. */
  readonly crashMs?: number
}

export type DatabaseDouble = {
  store(): StoreProcess | undefined
  readonly kills: number
  /** Memory in use without any query. */
  baseBytes: number
  /** Closed by its supervisor. */
  close(): void
}

type Running = { readonly startedMs: number; readonly profile: QueryProfile; end(response: QueryResponse): void }

const BASE_BYTES = 100
const REOPEN_MS = 400
const HEAD = { format: 'JSON', contentType: '', coverageSlot: 0 }
const END = { rows: 0, elapsedSeconds: 0, bytes: 0 }

/** A database process as the executor sees it, on the test's clock: queries take the time and memory of their profiles. */
export function createDatabaseDouble(clock: Clock, profileOf: (query: string) => QueryProfile): DatabaseDouble {
  let kills = 0
  let baseBytes = BASE_BYTES
  let current: StoreProcess | undefined
  let close = (): void => {}

  function open(): void {
    const running = new Map<number, Running>()
    const waiting = new Set<PromiseWithResolvers<unknown>>()
    let isGone = false

    function die(wasAtWork: boolean): void {
      if (isGone) return
      isGone = true
      current = undefined
      for (const one of waiting) one.reject(new StoreGone('the process ended', { wasAtWork }))
      clock.setTimer(REOPEN_MS, open)
    }

    function start(id: number, job: QueryJob, response: PromiseWithResolvers<unknown>): void {
      const profile = profileOf(job.query)
      const end = (outcome: QueryResponse): void => {
        running.delete(id)
        waiting.delete(response)
        response.resolve(outcome)
      }
      running.set(id, { startedMs: clock.monotonicMs(), profile, end })
      if (profile.crashMs !== undefined) clock.setTimer(profile.crashMs, () => running.has(id) && die(true))
      else if (!profile.isStuck)
        clock.setTimer(profile.ms, () =>
          running.get(id)?.end({ ok: true, head: HEAD, first: new Uint8Array(), end: END }),
        )
    }

    const opened = {
      ask(request: StoreRequest): Promise<unknown> {
        if (isGone) return Promise.reject(new StoreGone('the process has ended'))
        const response = Promise.withResolvers<unknown>()
        waiting.add(response)
        if (request.kind === 'query') start(request.id, request.job, response)
        else {
          const query = request.kind === 'interrupt' ? running.get(request.id) : undefined
          if (query?.profile.blocksProcess === true) return response.promise
          if (query?.profile.isStuck !== true) query?.end({ ok: false, type: 'TIMEOUT_EXCEEDED', message: 'stopped' })
          waiting.delete(response)
          response.resolve(null)
        }
        return response.promise
      },
      residentBytes() {
        const used = running.values().map(({ startedMs, profile }) => {
          return clock.monotonicMs() - startedMs >= (profile.afterMs ?? 0) ? profile.bytes : 0
        })
        return used.reduce((sum, bytes) => sum + bytes, baseBytes)
      },
      kill() {
        kills++
        clock.setTimer(5, () => die(true))
      },
    }
    current = opened as unknown as StoreProcess
    close = () => die(false)
  }

  open()
  return {
    store: () => current,
    get kills() {
      return kills
    },
    get baseBytes() {
      return baseBytes
    },
    set baseBytes(bytes) {
      baseBytes = bytes
    },
    close: () => close(),
  }
}
