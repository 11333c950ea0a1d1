import type { Caller } from '../../access/authorize.ts'
import type { Access } from '../../access/service.ts'

/** A subscription for its owner: plan, limits, usage, open connections, and the names of its dedicated nodes. No secret, no node address. */
export function whoami(access: Pick<Access, 'quota' | 'permits' | 'snapshot'>, caller: Caller, nowMs: number): object {
  const { subscription, limits } = caller
  const quota = access.quota(caller)
  const { methods, ...others } = limits
  return {
    subscription: subscription.name,
    plan: subscription.plan,
    products: subscription.products,
    ...(subscription.products.includes('dedicated-node') ? { dedicated_nodes: nodesOf(access, subscription.id) } : {}),
    valid_until: subscription.validUntil === null ? null : new Date(subscription.validUntil).toISOString(),
    limits: { ...others, methods: Object.entries(methods).map(([method, limit]) => ({ method, ...limit })) },
    budget: {
      limit: quota.limit,
      remaining: quota.remaining,
      resets_at: new Date(nowMs + quota.resetMs).toISOString(),
    },
    month: {
      limit: quota.month.limit,
      used: quota.month.used,
      resets_at: new Date(nowMs + quota.month.resetMs).toISOString(),
    },
    open: access.permits.taken(subscription.id),
  }
}

function nodesOf(access: Pick<Access, 'snapshot'>, subscriptionId: string): { readonly name: string }[] {
  return access
    .snapshot()
    .nodesOf(subscriptionId)
    .map(({ name }) => ({ name }))
}
