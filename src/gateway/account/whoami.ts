import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { isOpenChallenge, pendingId } from '../../access/provisioning/destinations.ts'
import type { Destination } from '../../access/store/model.ts'
import { printAddressPort } from '../../platform/net/ip-range.ts'

/** A subscription for its owner: plan, limits, usage, open connections, the destination of its shreds, and the names of its dedicated nodes. No secret, no node address. */
export function whoami(access: Pick<Access, 'quota' | 'permits' | 'snapshot'>, caller: Caller, nowMs: number): object {
  const { subscription, limits } = caller
  const quota = access.quota(caller)
  const { methods, ...others } = limits
  return {
    subscription: subscription.name,
    plan: subscription.plan,
    products: subscription.products,
    ...(subscription.products.includes('dedicated-node') ? { dedicated_nodes: nodesOf(access, subscription.id) } : {}),
    ...(subscription.products.includes('shreds-raw') ? { shreds: shredsOf(access, subscription.id, nowMs) } : {}),
    valid_until: subscription.validUntil === null ? null : new Date(subscription.validUntil).toISOString(),
    limits: { ...others, methods: Object.entries(methods).map(([method, limit]) => ({ method, ...limit })) },
    budget: {
      limit: quota.limit,
      remaining: quota.remaining,
      resets_at: new Date(nowMs + quota.resetMs).toISOString(),
    },
    rate_limits: quota.buckets.map(({ limit, method, capacity, remaining, resetMs }) => ({
      name: limit,
      ...(method === undefined ? {} : { method }),
      limit: capacity,
      remaining,
      // A rate of 0 never refills.
      resets_at: Number.isFinite(resetMs) ? new Date(nowMs + resetMs).toISOString() : null,
    })),
    month: {
      limit: quota.month.limit,
      used: quota.month.used,
      resets_at: new Date(roundToSecond(nowMs + quota.month.resetMs)).toISOString(),
    },
    open: access.permits.taken(subscription.id),
  }
}

/** The quota reads its clock a little earlier than the response, and a month begins at a whole second. */
function roundToSecond(unixMs: number): number {
  return Math.round(unixMs / 1000) * 1000
}

/** Where the shreds of a subscription are sent. */
export function shredsOf(access: Pick<Access, 'snapshot'>, subscriptionId: string, nowMs: number): object {
  const snapshot = access.snapshot()
  const current = snapshot.destination(subscriptionId)
  const pending = snapshot.destination(pendingId(subscriptionId))
  return {
    destination: current === undefined ? null : destinationOf(current),
    pending: isOpenChallenge(pending, nowMs) ? destinationOf(pending) : null,
  }
}

function destinationOf({ ip, port, proof, paused }: Destination): object {
  return { address: printAddressPort(ip, port), verified: proof !== 'unproven', paused }
}

function nodesOf(access: Pick<Access, 'snapshot'>, subscriptionId: string): { readonly name: string }[] {
  return access
    .snapshot()
    .nodesOf(subscriptionId)
    .map(({ name }) => ({ name }))
}
