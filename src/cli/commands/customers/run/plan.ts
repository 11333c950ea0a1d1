import { wireLimits } from '../../../../access/limit-rules.ts'
import type { Plan } from '../../../../access/plan.ts'
import type { LIMIT_LABELS } from '../../../../contract/limits.ts'
import type { CliContext, CommonFlags, ListFlags } from '../../../define.ts'
import { findPlan, findPlans } from '../../../operations/catalogue.ts'
import { printFacts, printJson, printList } from '../../../output/print.ts'
import { printLimits } from '../limits.ts'

export async function listPlans(this: CliContext, flags: ListFlags): Promise<void> {
  const rows = await findPlans(this, flags)
  const limit = (name: Exclude<keyof typeof LIMIT_LABELS, 'methodPerSecond'>, title: string, wire: string) => ({
    title,
    wire,
    value: ({ limits }: Pick<Plan, 'limits'>) => limits[name],
    show: ({ limits }: Pick<Plan, 'limits'>) => (limits[name] === null ? 'unlimited' : String(limits[name])),
  })
  printList(this, flags, {
    rows,
    empty: 'no plans',
    columns: [
      { title: 'NAME', value: (row) => row.name },
      limit('unitsPerSecond', 'UNITS/S', 'units_per_second'),
      limit('sendsPerSecond', 'SENDS/S', 'sends_per_second'),
      limit('wsConnections', 'WS CONNS', 'ws_connections'),
      limit('wsSubscriptions', 'WS SUBS', 'ws_subscriptions'),
      limit('grpcStreams', 'STREAMS', 'grpc_streams'),
      limit('grpcAccountsPerStream', 'ACCOUNTS', 'grpc_accounts_per_stream'),
      { ...limit('unitsPerMonth', 'UNITS/MONTH', 'units_per_month'), wide: true },
      { ...limit('requestBytes', 'BYTES', 'request_bytes'), wide: true },
      { ...limit('batchItems', 'BATCH', 'batch_items'), wide: true },
    ],
  })
}

export async function showPlan(this: CliContext, flags: CommonFlags, name: string): Promise<void> {
  const plan = await findPlan(this, flags, name)
  if (flags.json === true)
    return printJson(this, {
      name: plan.name,
      limits: wireLimits(plan.limits),
      costs: plan.costs,
    })
  printFacts(this, [
    ['plan', plan.name],
    ...printLimits(plan.limits, {}),
    ...plan.costs
      .filter(({ cost }) => cost !== 1)
      .map(({ method, cost }) => ['cost', `${cost} units  ${method}`] as const),
    ['cost', '1 unit  every other method'],
  ])
}
