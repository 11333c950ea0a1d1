import { bad, type Finding, ok } from '../../processes/compose/config/finding.ts'
import { askProcess } from '../control.ts'
import { printTime } from '../dates.ts'

/** The parts of the running process that work with a fault, as it reports them itself. */
export async function checkProcess(stateDir: string): Promise<Finding[]> {
  const status = await askProcess(stateDir, (control) => control.call('status'))
  if (status === undefined) return []
  const { state, reasons, pid } = status
  if (reasons.length === 0) return [ok('process', `${pid}: ${state}`)]
  const fix = 'sluice logs tail   # what the process logged about this part; docs/alerts.md has the steps for each'
  return reasons.map(({ part, reason, sinceMs }) =>
    bad('process', `${pid}: ${part}: ${reason}, since ${printTime(sinceMs)} UTC`, fix),
  )
}
