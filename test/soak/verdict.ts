import type { SoakReport } from './soak.ts'

/** Maximum growth of RSS per minute after the warm-up. */
const SLOPE_MIB_PER_MINUTE_MAX = 1
/** The number of connections to nodes varies; more than this above the start is a leak. */
const DESCRIPTORS_SLACK = 40

/** The violations in a report. The memory slope is checked only in long runs. */
export function verdictOf(report: SoakReport): string[] {
  const { ledger, memory, descriptors } = report
  const broken = [...report.violations]
  if (ledger.booked > ledger.reported + ledger.awaitingResponse)
    broken.push(`${ledger.booked} units are recorded, ${ledger.reported} were reported to customers`)
  if (ledger.booked < ledger.reported - ledger.lostMax)
    broken.push(`${ledger.booked} units are recorded of ${ledger.reported}; a kill may lose ${ledger.lostMax}`)
  if (report.seconds >= 600 && memory.slopeMiBPerMinute > SLOPE_MIB_PER_MINUTE_MAX)
    broken.push(`memory grows by ${memory.slopeMiBPerMinute.toFixed(2)} MiB per minute`)
  if (descriptors.after > descriptors.before + DESCRIPTORS_SLACK)
    broken.push(`${descriptors.after} descriptors are open, ${descriptors.before} were before`)
  return broken
}
