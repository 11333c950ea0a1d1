import type { Clock } from '../core/clock.ts'
import type { Logger } from './logger.ts'

export type MemoryPressure = 'none' | 'no-new-streams' | 'no-new-sockets'

export type MemoryGuard = Disposable & {
  /** What must be refused for now; measured by a timer, so asking is free. */
  pressure(): MemoryPressure
  mayOpenStream(): boolean
  mayAccept(): boolean
}

export type MemoryGuardDeps = { clock: Clock; log: Logger; residentBytes?: () => number }

/** Calls go on for a while when streams are turned away: they hold memory for a moment only. */
const STREAMS_FROM = 0.8
const SOCKETS_FROM = 0.9
const PERIOD_MS = 500

/** Keeps a process within its memory by turning away what is new before what is open suffers. */
export function createMemoryGuard(
  { residentBytesMax: bytesMax }: { residentBytesMax: number },
  deps: MemoryGuardDeps,
): MemoryGuard {
  const { clock, log, residentBytes = () => process.memoryUsage.rss() } = deps
  let pressure: MemoryPressure = 'none'

  function measure(): void {
    const bytes = residentBytes()
    const share = bytes / bytesMax
    const now = share >= SOCKETS_FROM ? 'no-new-sockets' : share >= STREAMS_FROM ? 'no-new-streams' : 'none'
    if (now === pressure) return
    pressure = now
    log.warn({ pressure, residentBytes: bytes, residentBytesMax: bytesMax }, 'memory pressure changed')
  }

  measure()
  const timer = clock.setRepeating(PERIOD_MS, measure)
  timer.unref?.()
  return {
    pressure: () => pressure,
    mayOpenStream: () => pressure === 'none',
    mayAccept: () => pressure !== 'no-new-sockets',
    [Symbol.dispose]: () => timer.cancel(),
  }
}
