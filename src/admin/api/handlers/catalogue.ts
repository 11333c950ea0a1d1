import { wireLimits } from '../../../access/limit-rules.ts'
import { methodCost } from '../../../access/plan.ts'
import { PRODUCT_KEYS, PRODUCTS } from '../../../contract/products.ts'
import { RPC_METHODS } from '../../../contract/rpc-methods.ts'
import { toWireJson } from '../../../contract/wire-json.ts'
import type { AdminHandlers } from '../handler.ts'
import type { HandlerDeps } from './deps.ts'
import { paramOf } from './query.ts'

/** Products and plans. */
export function catalogueHandlers({
  offered,
  plans,
}: HandlerDeps): Pick<AdminHandlers, 'products' | 'planList' | 'planShow'> {
  return {
    async products() {
      const items = PRODUCT_KEYS.map((key) => {
        const { title, authorization, provisioned } = PRODUCTS[key]
        return { key, title, authorization, needs_subscription: provisioned, is_offered: offered.has(key) }
      })
      return { body: { items, next_cursor: null } }
    },
    async planList() {
      const items = plans()
        .list()
        .map(({ name, limits }) => ({ name, limits: wireLimits(limits) }))
      return { body: { items: toWireJson(items), next_cursor: null } }
    },
    async planShow(call) {
      const { name, limits } = plans().get(paramOf(call, 'plan'))
      const costs = Object.keys(RPC_METHODS).map((method) => ({ method, cost: methodCost(limits, method) }))
      return { body: toWireJson({ name, limits: wireLimits(limits), costs }) }
    },
  }
}
