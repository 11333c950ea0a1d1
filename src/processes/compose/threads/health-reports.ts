import type { Lifecycle } from '../../../platform/process/lifecycle.ts'

/** The faults that threads report, as faults of the process: a part works again when no thread reports it any more. */
export type HealthReports = {
  degraded(thread: string, part: string, reason: string): void
  recovered(thread: string, part: string): void
  /** What a thread reports by. */
  of(thread: string): Pick<Lifecycle, 'degraded' | 'recovered'>
  /** The thread has ended, and its reports with it. */
  ended(thread: string): void
}

export function createHealthReports(lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>): HealthReports {
  /** Reasons by part and thread. */
  const parts = new Map<string, Map<string, string>>()

  function recovered(thread: string, part: string): void {
    const reasons = parts.get(part)
    if (reasons?.delete(thread) !== true) return
    const [other] = reasons.values()
    if (other !== undefined) return lifecycle.degraded(part, other)
    parts.delete(part)
    lifecycle.recovered(part)
  }

  function degraded(thread: string, part: string, reason: string): void {
    const reasons = parts.get(part) ?? new Map<string, string>()
    parts.set(part, reasons.set(thread, reason))
    lifecycle.degraded(part, reason)
  }

  return {
    degraded,
    recovered,
    of: (thread) => ({
      degraded: (part, reason) => degraded(thread, part, reason),
      recovered: (part) => recovered(thread, part),
    }),
    ended(thread) {
      for (const part of [...parts.keys()]) recovered(thread, part)
    },
  }
}
