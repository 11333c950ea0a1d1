import type { PlanTable } from '../../../access/plan.ts'
import type { Provisioning } from '../../../access/provisioning/context.ts'
import { addCustomer } from '../../../access/provisioning/customers.ts'
import { createSubscription } from '../../../access/provisioning/subscriptions.ts'
import type { Access } from '../../../access/service.ts'
import type { AccessView } from '../../../access/store/store.ts'
import type { Bundle } from '../../../gateway/service.ts'
import type { Sender } from '../../../sender/service.ts'
import type { Settings } from '../config/settings.ts'
import { currentActor, type Deps } from '../process/deps.ts'
import { type Endpoints, endpointsOf } from './endpoints.ts'
import { handoverCard } from './handover-card.ts'
import type { AccessPart } from './open-access.ts'

type Listening = { readonly address: { readonly port: number } }

export type DemoServices = {
  readonly customers: AccessPart
  readonly bundle: Pick<Bundle, 'rpc' | 'ws' | 'grpc'>
  readonly sender: Pick<Sender, 'address' | 'tipAccounts'> | undefined
  readonly execution: Listening | undefined
  readonly indexer: Listening | undefined
}

/** The handover card of the demo subscription at the first start; at later ones, where the services are. */
export async function demoCard(
  { config, plans }: Settings,
  { random, env, clock }: Pick<Deps, 'random' | 'env' | 'clock'>,
  { customers: { store, access }, bundle, sender, execution, indexer }: DemoServices,
): Promise<string> {
  const endpoints = endpointsOf(config, {
    rpc: bundle.rpc.port,
    ws: bundle.ws.port,
    grpc: bundle.grpc.port,
    sender: sender?.address.port,
    tipAccounts: sender?.tipAccounts,
    execution: execution?.address.port,
    indexer: indexer?.address.port,
  })
  const on = { store, random, actor: currentActor(env), nowMs: clock.nowMs() }
  const card = await createDemo(on, plans, endpoints)
  if (card === undefined) return returningHint(store, endpoints)
  // The commands on the card work once this process has loaded the new token.
  await untilRevision(access, await store.revision())
  return card
}

/**
 * At the first start without a configuration: creates one subscription with all products and returns its card. The card holds the token and is shown
 * only now. Returns undefined when the store has customers.
 */
async function createDemo(on: Provisioning, plans: PlanTable, endpoints: Endpoints): Promise<string | undefined> {
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
  return endpoints.execution === undefined ? card : `${card}\nDashboard  ${endpoints.execution}/\n`
}

async function returningHint(store: AccessView, { execution, rpc }: Endpoints): Promise<string> {
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

/** Waits until this process has loaded the store at `revision` or later. */
export async function untilRevision(access: Pick<Access, 'snapshot' | 'onChange'>, revision: number): Promise<void> {
  while (access.snapshot().revision < revision) {
    const { promise, resolve } = Promise.withResolvers<void>()
    using _watching = access.onChange(resolve)
    if (access.snapshot().revision < revision) await promise
  }
}
