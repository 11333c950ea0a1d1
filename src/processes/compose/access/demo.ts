import type { Access } from '../../../access/call-access.ts'
import type { PlanTable } from '../../../access/plan.ts'
import type { Provisioning } from '../../../access/provisioning/context.ts'
import { addCustomer } from '../../../access/provisioning/customers.ts'
import { createSubscription } from '../../../access/provisioning/subscriptions.ts'
import type { Customer } from '../../../access/store/model.ts'
import type { AccessView } from '../../../access/store/store.ts'
import type { Settings } from '../config/settings.ts'
import { currentActor, type Deps } from '../process/deps.ts'
import type { Endpoints } from './endpoints.ts'
import { handoverCard } from './handover-card.ts'
import type { OpenedAccess } from './open-access.ts'

/** The handover card of the demo subscription at the first start; at later ones, where the services are. */
export async function demoCard(
  { plans, stateDir }: Settings,
  { random, env, clock }: Pick<Deps, 'random' | 'env' | 'clock'>,
  {
    openedAccess: { store, access },
    endpoints,
  }: { readonly openedAccess: OpenedAccess; readonly endpoints: Endpoints },
): Promise<string> {
  const on = { store, random, actor: currentActor(env), nowMs: clock.nowMs() }
  const card = await createDemo(on, plans, endpoints)
  if (card === undefined) return returningHint(store, endpoints)
  // The commands on the card work once this process has loaded the new token.
  await untilRevision(access, await store.revision())
  return `${card}${keepHint(stateDir)}`
}

/** What cannot be made again if the machine is lost. */
function keepHint(stateDir: string): string {
  return `\nKeep       ${stateDir} has your customers, and in keys/ the wallets that tips are paid to.\n           Back it up, encrypted: sluice backup FILE\n`
}

const DEMO_CONTACT = 'made by the first start'

/** The customer that the first start made, until it is removed. Its token was printed. */
export async function findDemoCustomer(store: Pick<AccessView, 'list'>): Promise<Customer | undefined> {
  const customers = await store.list('customers')
  return customers.find(({ contact, state }) => contact === DEMO_CONTACT && state !== 'removed')
}

/**
 * At the first start without a configuration: creates one subscription with all products and returns its card. The card holds the token and is shown
 * only now. Returns undefined when the store has customers.
 */
async function createDemo(on: Provisioning, plans: PlanTable, endpoints: Endpoints): Promise<string | undefined> {
  if ((await on.store.list('customers')).length > 0) return undefined
  await addCustomer(on, { name: 'demo', contact: DEMO_CONTACT })
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
  return endpoints.execution === undefined ? card : `${card}\n${dashboardLine(endpoints)}\n`
}

function dashboardLine({ execution, isExecutionSimulated = false }: Endpoints): string {
  return `Dashboard  ${execution}/${isExecutionSimulated ? '   simulated data' : ''}`
}

async function returningHint(store: AccessView, endpoints: Endpoints): Promise<string> {
  const { execution, rpc } = endpoints
  const [demo] = await store.find('subscriptions', { name: 'demo' })
  return [
    ...(execution === undefined ? [] : [dashboardLine(endpoints)]),
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
