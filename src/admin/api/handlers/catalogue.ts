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
  prices = {},
}: Pick<HandlerDeps, 'offered' | 'plans' | 'prices'>): Pick<AdminHandlers, 'products' | 'planList' | 'planShow'> {
  const priceOf = (plan: string): object | null => {
    const price = Object.hasOwn(prices, plan) ? prices[plan] : undefined
    if (price === undefined) return null
    const { currency, perMonth, perMillionUnits, perGigabyte } = price
    return { currency, perMonth, perMillionUnits, perGigabyte }
  }

  return {
    async products() {
      const items = PRODUCT_KEYS.map((key) => {
        const { title, authorization, provisioned, available } = PRODUCTS[key]
        const isOffered = offered.has(key)
        const status = available ? 'offered' : isOffered ? 'preview' : 'coming-soon'
        return { key, title, authorization, needs_subscription: provisioned, is_offered: isOffered, status }
      })
      return { body: { items, next_cursor: null } }
    },
    async planList() {
      const items = plans()
        .list()
        .map(({ name, limits }) => ({ name, limits: wireLimits(limits), price: priceOf(name) }))
      return { body: { items: toWireJson(items), next_cursor: null } }
    },
    async planShow(call) {
      const { name, limits } = plans().get(paramOf(call, 'plan'))
      const costs = Object.keys(RPC_METHODS).map((method) => ({ method, cost: methodCost(limits, method) }))
      return { body: toWireJson({ name, limits: wireLimits(limits), price: priceOf(name), costs }) }
    },
  }
}
