import type { Caller } from '../../access/authorize.ts'
import type { Access } from '../../access/service.ts'

/** What a customer may know of its own subscription: plan, limits, what is used and left, what is open. No secret. */
export function whoami(access: Pick<Access, 'quota' | 'permits'>, caller: Caller, nowMs: number): object {
  const { subscription, limits } = caller
  const quota = access.quota(caller)
  const { methods, ...plain } = limits
  return {
    subscription: subscription.name,
    plan: subscription.plan,
    products: subscription.products,
    valid_until: subscription.validUntil === null ? null : new Date(subscription.validUntil).toISOString(),
    limits: { ...plain, methods: Object.entries(methods).map(([method, limit]) => ({ method, ...limit })) },
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
