import type { SoakReport } from './soak.ts'

/** RSS may grow by so much a minute once warm (robustness: soak gate). */
const SLOPE_MIB_PER_MINUTE_MAX = 1
/** Connections to nodes come and go; more than this over the start is a leak. */
const DESCRIPTORS_SLACK = 40

/** Promises that a report shows to be broken, in words. The slope is a promise of the long run and not asked of a short one. */
export function verdictOf(report: SoakReport): string[] {
  const { ledger, memory, descriptors } = report
  const broken = [...report.objections]
  if (ledger.booked > ledger.reported + ledger.awaitingResponse)
    broken.push(`${ledger.booked} units are booked, customers were told of ${ledger.reported}`)
  if (ledger.booked < ledger.reported - ledger.lostMax)
    broken.push(`${ledger.booked} units are booked of ${ledger.reported}; a kill may lose ${ledger.lostMax}`)
  if (report.seconds >= 600 && memory.slopeMiBPerMinute > SLOPE_MIB_PER_MINUTE_MAX)
    broken.push(`memory grows by ${memory.slopeMiBPerMinute.toFixed(2)} MiB a minute`)
  if (descriptors.after > descriptors.before + DESCRIPTORS_SLACK)
    broken.push(`${descriptors.after} descriptors are open, ${descriptors.before} were before`)
  return broken
}
