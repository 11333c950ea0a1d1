import { printDurationShort } from '../../../core/bytes.ts'
import { openControlClient } from '../../../host/control-client.ts'
import type { StatusReport } from '../../all.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import { printFacts, printJson } from '../output.ts'
import { controlPath } from './control.ts'

export async function status(this: CliContext, flags: CommonFlags): Promise<void> {
  using client = await openControlClient(controlPath(this, flags))
  const report = (await client.call('status')) as StatusReport
  if (flags.json === true) return printJson(this, report)
  printFacts(this, [
    ['state', report.state],
    ...report.reasons.map(({ part, reason }) => ['degraded', `${part}: ${reason}`] as const),
    ['version', report.version],
    ['process', report.pid],
    ['up', printDurationShort(report.uptimeSeconds * 1000)],
    ['store', `${report.store} at revision ${report.revision}`],
    ['holds', `${report.customers} customers, ${report.subscriptions} subscriptions, ${report.tokens} tokens`],
    ...report.services.map(({ name, address }) => [name, address] as const),
  ])
}
