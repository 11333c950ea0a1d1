import { buildApplication, buildRouteMap } from '@stricli/core'
import { VERSION } from '../version.ts'
import { backupCommand, restoreCommand } from './backup.ts'
import { configRoutes } from './config.ts'
import { customerRoutes } from './customer.ts'
import type { CliContext } from './define.ts'
import { docsCommand } from './docs.ts'
import { exitCodeOf } from './errors.ts'
import { executionCommand } from './execution.ts'
import { indexerRoutes } from './indexer.ts'
import { auditRoutes, usageCommand } from './insight.ts'
import { localnetCommand } from './localnet.ts'
import { logsRoutes } from './logs.ts'
import { nodeRoutes } from './node.ts'
import { planRoutes } from './plan.ts'
import { ringRoutes } from './ring.ts'
import { doctorCommand, drainCommand, initCommand, reloadCommand, serveCommand, statusCommand } from './running.ts'
import { completionRoutes, versionCommand } from './self.ts'
import { senderCommand } from './sender.ts'
import { shredRoutes } from './shred.ts'
import { shredsCommand } from './shreds.ts'
import { subRoutes } from './sub.ts'
import { tipRoutes } from './tip.ts'
import { tokenRoutes } from './token.ts'
import { topCommand } from './top.ts'
import { upstreamRoutes } from './upstream.ts'
import { createApplicationText } from './words.ts'

export const rootRoutes = buildRouteMap<string, CliContext>({
  docs: {
    brief: 'Sell access to blockchain data and transaction submission',
    fullDescription:
      'Sell access to blockchain data and transaction submission.\nStart with `sluice serve`; add a customer with `sluice customer add`, then `sluice sub create`.',
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
    node: nodeRoutes,
    upstream: upstreamRoutes,
    shred: shredRoutes,
    indexer: indexerRoutes,
    tip: tipRoutes,
    ring: ringRoutes,
    localnet: localnetCommand,
    execution: executionCommand,
    sender: senderCommand,
    shreds: shredsCommand,
    usage: usageCommand,
    audit: auditRoutes,
    logs: logsRoutes,
    backup: backupCommand,
    restore: restoreCommand,
    config: configRoutes,
    docs: docsCommand,
    completion: completionRoutes,
    version: versionCommand,
  },
})

/** The command line as the library wants it; `argv` decides only how mistakes are printed. */
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
