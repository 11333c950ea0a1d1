import { buildApplication, buildRouteMap } from '@stricli/core'
import { VERSION } from '../processes/compose/process/version.ts'
import { adminRoutes } from './commands/customers/admin.ts'
import { auditRoutes } from './commands/customers/audit.ts'
import { customerRoutes } from './commands/customers/customer.ts'
import { planRoutes } from './commands/customers/plan.ts'
import { subRoutes } from './commands/customers/sub.ts'
import { tokenRoutes } from './commands/customers/token.ts'
import { usageRoutes } from './commands/customers/usage.ts'
import { backupCommand, restoreCommand } from './commands/operate/backup.ts'
import { billingRoutes, invoiceRoutes } from './commands/operate/billing.ts'
import { configRoutes } from './commands/operate/config.ts'
import { docsCommand } from './commands/operate/docs.ts'
import { logsRoutes } from './commands/operate/logs.ts'
import { noticeRoutes } from './commands/operate/notice.ts'
import { doctorCommand, drainCommand, initCommand, reloadCommand, statusCommand } from './commands/operate/process.ts'
import { completionRoutes, versionCommand } from './commands/operate/self.ts'
import { topCommand } from './commands/operate/top.ts'
import { indexerRoutes } from './commands/services/indexer.ts'
import { localnetRoutes } from './commands/services/localnet.ts'
import { serveCommand } from './commands/services/serve.ts'
import { executionCommand, gatewayCommand, senderCommand, shredsCommand } from './commands/services/standalone.ts'
import { benchRoutes } from './commands/tools/bench.ts'
import { nodeRoutes } from './commands/tools/node.ts'
import { ringRoutes } from './commands/tools/ring.ts'
import { shredRoutes } from './commands/tools/shred.ts'
import { tipRoutes } from './commands/tools/tip.ts'
import { upstreamRoutes } from './commands/tools/upstream.ts'
import type { CliContext } from './define.ts'
import { exitCodeOf } from './errors.ts'
import { createApplicationText } from './help-text.ts'

export const rootRoutes = buildRouteMap<string, CliContext>({
  docs: {
    brief: 'Sell access to blockchain data and transaction submission',
    fullDescription:
      'Sell access to blockchain data and transaction submission.\nStart with `sluice serve`; add a customer with `sluice customer add`, then `sluice sub create`.\nsluice --remote URL COMMAND runs a command on another machine, over its admin API: see docs/admin-api.md.',
  },
  routes: {
    init: initCommand,
    serve: serveCommand,
    status: statusCommand,
    doctor: doctorCommand,
    reload: reloadCommand,
    drain: drainCommand,
    top: topCommand,
    customer: customerRoutes,
    sub: subRoutes,
    token: tokenRoutes,
    plan: planRoutes,
    admin: adminRoutes,
    node: nodeRoutes,
    upstream: upstreamRoutes,
    shred: shredRoutes,
    indexer: indexerRoutes,
    tip: tipRoutes,
    ring: ringRoutes,
    bench: benchRoutes,
    localnet: localnetRoutes,
    gateway: gatewayCommand,
    execution: executionCommand,
    sender: senderCommand,
    shreds: shredsCommand,
    usage: usageRoutes,
    billing: billingRoutes,
    invoice: invoiceRoutes,
    audit: auditRoutes,
    logs: logsRoutes,
    notice: noticeRoutes,
    backup: backupCommand,
    restore: restoreCommand,
    config: configRoutes,
    docs: docsCommand,
    completion: completionRoutes,
    version: versionCommand,
  },
})

/** The command line as an application of stricli; `argv` decides only whether errors are printed as text or JSON. */
export function createApplication(argv: readonly string[]) {
  return buildApplication<CliContext>(rootRoutes, {
    name: 'sluice',
    versionInfo: { currentVersion: VERSION },
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
    documentation: { caseStyle: 'convert-camel-to-kebab', onlyRequiredInUsageLine: true, useAliasInUsageLine: false },
    localization: { text: createApplicationText(argv) },
    determineExitCode: exitCodeOf,
  })
}
