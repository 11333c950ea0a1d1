import { methodCost, type Plan } from '../../access/plan.ts'
import { offeredProducts } from '../../contract/product-options.ts'
import type { ProductKey } from '../../contract/products.ts'
import { RPC_METHODS } from '../../contract/rpc-methods.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import { findSettings } from '../find-settings.ts'
import { openRemote } from './open.ts'

export type ShownPlan = Pick<Plan, 'name' | 'limits'> & {
  readonly costs: readonly { readonly method: string; readonly cost: number }[]
}

/** Products that can be provisioned. */
export async function findOffered(context: CliContext, flags: CommonFlags): Promise<ReadonlySet<ProductKey>> {
  if (context.remote === undefined) return offeredProducts((await findSettings(context, flags)).config.products)
  using api = await openRemote(context, flags)
  const products = await api.list<{ key: ProductKey; isOffered: boolean }>('products')
  return new Set(products.filter(({ isOffered }) => isOffered).map(({ key }) => key))
}

export async function findPlans(
  context: CliContext,
  flags: CommonFlags,
): Promise<readonly Pick<Plan, 'name' | 'limits'>[]> {
  if (context.remote === undefined) return (await findSettings(context, flags)).plans.list()
  using api = await openRemote(context, flags)
  return api.list('planList')
}

export async function findPlan(context: CliContext, flags: CommonFlags, name: string): Promise<ShownPlan> {
  if (context.remote !== undefined) {
    using api = await openRemote(context, flags)
    return await api.call('planShow', { params: { plan: name } })
  }
  const plan = (await findSettings(context, flags)).plans.get(name)
  const costs = Object.keys(RPC_METHODS).map((method) => ({ method, cost: methodCost(plan.limits, method) }))
  return { name: plan.name, limits: plan.limits, costs }
}
