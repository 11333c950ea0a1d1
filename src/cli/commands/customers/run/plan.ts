import { wireLimits } from '../../../../access/limit-rules.ts'
import { methodCost, type Plan } from '../../../../access/plan.ts'
import type { LIMIT_LABELS } from '../../../../contract/limits.ts'
import { RPC_METHODS } from '../../../../contract/rpc-methods.ts'
import type { CliContext, CommonFlags, ListFlags } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { printFacts, printJson, printList } from '../../../output/print.ts'
import { printLimits } from '../limits.ts'

export async function listPlans(this: CliContext, flags: ListFlags): Promise<void> {
  const { plans } = await findSettings(this, flags)
  const limit = (name: Exclude<keyof typeof LIMIT_LABELS, 'methodPerSecond'>, title: string, wire: string) => ({
    title,
    wire,
    value: ({ limits }: Plan) => limits[name],
    show: ({ limits }: Plan) => (limits[name] === null ? 'unlimited' : String(limits[name])),
  })
  printList(this, flags, {
    rows: plans.list(),
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
  const { plans } = await findSettings(this, flags)
  const plan = plans.get(name)
  const costs = Object.keys(RPC_METHODS).map((method) => [method, methodCost(plan.limits, method)] as const)
  if (flags.json === true)
    return printJson(this, {
      name: plan.name,
      limits: wireLimits(plan.limits),
      costs: costs.map(([method, cost]) => ({ method, cost })),
    })
  printFacts(this, [
    ['plan', plan.name],
    ...printLimits(plan.limits, {}),
    ...costs.filter(([, cost]) => cost !== 1).map(([method, cost]) => ['cost', `${cost} units  ${method}`] as const),
    ['cost', '1 unit  every other method'],
  ])
}
