import type { Customer, Subscription } from './store/model.ts'

export const SUBSCRIPTION_STATES = ['active', 'suspended', 'cancelled', 'expired', 'customer-suspended'] as const
export type SubscriptionState = (typeof SUBSCRIPTION_STATES)[number]

/** The effective state: expired after the last day, and suspended with its customer, whatever the record contains. */
export function stateOf(
  subscription: Pick<Subscription, 'state' | 'validUntil'>,
  customer: Pick<Customer, 'state'> | undefined,
  nowMs: number,
): SubscriptionState {
  if (subscription.state !== 'active') return subscription.state
  if (subscription.validUntil !== null && subscription.validUntil <= nowMs) return 'expired'
  return customer?.state === 'suspended' ? 'customer-suspended' : 'active'
}

export function isSubscriptionState(text: string): text is SubscriptionState {
  return (SUBSCRIPTION_STATES as readonly string[]).includes(text)
}
