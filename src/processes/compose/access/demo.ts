import type { PlanTable } from '../../../access/plan.ts'
import type { Provisioning } from '../../../access/provisioning/context.ts'
import { addCustomer } from '../../../access/provisioning/customers.ts'
import { createSubscription } from '../../../access/provisioning/subscriptions.ts'
import type { Access } from '../../../access/service.ts'
import type { AccessView } from '../../../access/store/store.ts'
import type { Endpoints } from './endpoints.ts'
import { handoverCard } from './handover-card.ts'

/**
 * On the very first start without a configuration: one subscription with everything, so that a newcomer has something to call with. Returns its
 * card, the only time it can be shown; undefined when the store has customers already.
 */
export async function makeDemo(on: Provisioning, plans: PlanTable, endpoints: Endpoints): Promise<string | undefined> {
  if ((await on.store.list('customers')).length > 0) return undefined
  await addCustomer(on, { name: 'demo', contact: 'made by the first start' })
  const created = await createSubscription(on, {
    customer: 'demo',
    name: 'demo',
    plan: 'professional',
    products: ['bundle', 'indexer', 'shreds-raw'],
    overrides: {},
    validUntil: null,
    destination: { address: '127.0.0.1:20001', vouched: true },
  })
  const card = handoverCard({ ...created, limits: plans.limitsOf('professional', {}), endpoints })
  // The page belongs to no subscription, but a newcomer wants to see something move.
  return endpoints.execution === undefined ? card : `${card}\nDashboard  ${endpoints.execution}/\n`
}

/** What a later start tells instead of the card, whose secrets cannot be shown again. */
export async function returningHint(store: AccessView, { execution, rpc }: Endpoints): Promise<string> {
  const [demo] = await store.find('subscriptions', { name: 'demo' })
  return [
    ...(execution === undefined ? [] : [`Dashboard  ${execution}/`]),
    ...(rpc === undefined ? [] : [`RPC        ${rpc}`]),
    demo === undefined
      ? 'Your subscriptions: sluice sub list'
      : 'The demo token was shown at the first start; for a new one: sluice token rotate demo',
    '',
  ].join('\n')
}

/** Until this process has taken over the store up to that revision. */
export async function untilRevision(access: Pick<Access, 'snapshot' | 'onChange'>, revision: number): Promise<void> {
  while (access.snapshot().revision < revision) {
    const { promise, resolve } = Promise.withResolvers<void>()
    using _watching = access.onChange(resolve)
    if (access.snapshot().revision < revision) await promise
  }
}
