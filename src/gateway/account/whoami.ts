import type { Caller } from '../../access/authorize.ts'
import type { Access } from '../../access/service.ts'

/** A subscription for its owner: plan, limits, usage, open connections. No secret. */
export function whoami(access: Pick<Access, 'quota' | 'permits'>, caller: Caller, nowMs: number): object {
  const { subscription, limits } = caller
  const quota = access.quota(caller)
  const { methods, ...others } = limits
  return {
    subscription: subscription.name,
    plan: subscription.plan,
    products: subscription.products,
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
