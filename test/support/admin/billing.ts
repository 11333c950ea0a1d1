import type { UsageRow } from '../../../src/access/store/model.ts'
import type { AccessStore } from '../../../src/access/store/store.ts'
import { createLago } from '../../../src/admin/billing/lago.ts'
import { createOpenMeter } from '../../../src/admin/billing/openmeter.ts'
import type { BillingSinkName } from '../../../src/admin/billing/options.ts'
import type { PlanOptions } from '../../../src/admin/billing/plan-events.ts'
import { createPusher, type Pusher, type PusherDeps } from '../../../src/admin/billing/pusher.ts'
import { beginBilling } from '../../../src/admin/billing/service.ts'
import type { BillingSink } from '../../../src/admin/billing/sink.ts'
import { createStripe } from '../../../src/admin/billing/stripe.ts'
import type { Clock } from '../../../src/core/clock.ts'
import { createSeededRandom } from '../../../src/core/random.ts'
import { Secret } from '../../../src/platform/config/secret-ref.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { CONTEXT, customer } from '../store/engines.ts'

export const HOUR_MS = 3_600_000
/** The first hour that is sent. */
export const FROM_MS = Date.UTC(2027, 0, 10)
const NAMES = { units: 'sluice_units', calls: 'sluice_calls', bytes: 'sluice_bytes' }

/** A customer with a billing id and one subscription, `sub_NAME`. */
export async function addBilledCustomer(store: AccessStore, name: string): Promise<void> {
  await store.change(CONTEXT, async (tx) => {
    await tx.put('customers', customer(name))
    await tx.put('subscriptions', {
      id: `sub_${name}`,
      customerId: `cus_${name}`,
      name,
      plan: 'build',
      products: ['bundle'],
      overrides: {},
      state: 'active',
      createdAt: FROM_MS,
      validUntil: null,
    })
    return { audit: { action: 'test.put', subjects: [] }, result: undefined }
  })
}

export function usageOf(
  name: string,
  hour: number,
  units: number,
  of: UsageRow['interface'] = 'rpc',
  bytes = 0,
): UsageRow {
  return { subscriptionId: `sub_${name}`, hour, interface: of, calls: Math.sign(units), units, refused: 0, bytes }
}

export function createTestClient(kind: BillingSinkName, url: string, storeId: string, clock: Clock): BillingSink {
  const address = { url, key: new Secret('the-key-of-the-sink') }
  if (kind === 'openmeter') return createOpenMeter(address, { names: NAMES, storeId }, { clock })
  return kind === 'lago'
    ? createLago(address, { names: NAMES }, { clock })
    : createStripe(address, { names: NAMES }, { clock })
}

export type TestPusher = Pusher & Disposable

/** A pusher as the next process of the store would have it. */
export async function openTestPusher(
  kind: BillingSinkName,
  given: Pick<PusherDeps, 'store' | 'clock' | 'owner' | 'onStep'> & { readonly url: string } & Partial<PlanOptions>,
): Promise<TestPusher> {
  const { store, clock, owner, onStep, url, quantities = ['units'] } = given
  const random = createSeededRandom(owner.length)
  const { storeId } = await beginBilling(store.billing, kind, { clock, random, fromMs: FROM_MS })
  const sink = createTestClient(kind, url, storeId, clock)
  const subject = kind === 'lago' ? 'subscription' : 'customer'
  const pusher = createPusher(
    { sink: kind, quantities, settleMs: 300_000, subject, fromMs: FROM_MS },
    { store, sink, clock, random, log: silentLogger, owner, ...(onStep === undefined ? {} : { onStep }) },
  )
  return { ...pusher, [Symbol.dispose]: () => sink[Symbol.dispose]() }
}
