import type { Limits } from '../../contract/limits.ts'
import { isProductKey, PRODUCT_KEYS, PRODUCTS, type ProductKey } from '../../contract/products.ts'
import { didYouMean } from '../../core/did-you-mean.ts'
import { ServiceError } from '../../core/error.ts'
import { printAddressPort } from '../../platform/net/ip-range.ts'
import { stateOf } from '../effective-state.ts'
import { type LimitChanges, mergeOverrides } from '../limit-rules.ts'
import type { Customer, Destination, Subscription } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { lookUp, lookUpToChange, makeId, type Provisioning, parseName, runChange } from './context.ts'
import { checkAddressFree, newDestination, parseDestination } from './destinations.ts'
import { endCredentials, type IssuedCredential, putNewCredential } from './indexer-credentials.ts'
import { endTokens, type IssuedToken, putNewToken } from './tokens.ts'

export type SubscriptionInput = {
  readonly customer: string
  readonly name: string
  readonly plan: string
  readonly products: readonly ProductKey[]
  readonly overrides: Partial<Limits>
  readonly validUntil: number | null
  /** For shreds-raw: the destination, and whether the operator vouches for it. */
  readonly destination?: { readonly address: string; readonly vouched: boolean } | undefined
}

/** A new subscription with its secrets, which are not stored. */
export type CreatedSubscription = {
  readonly customer: Customer
  readonly subscription: Subscription
  readonly token: IssuedToken | undefined
  readonly credential: IssuedCredential | undefined
  readonly destination: Destination | undefined
}

/** Products whose callers present the token of the subscription. */
const TOKEN_PRODUCTS: readonly ProductKey[] = ['bundle', 'indexer', 'dedicated-node', 'shreds-decoded']

export async function createSubscription(on: Provisioning, input: SubscriptionInput): Promise<CreatedSubscription> {
  const name = parseName(input.name, 'subscription')
  refusePast(input.validUntil, on.nowMs)
  const address = input.destination && parseDestination(input.destination.address, input.destination.vouched)
  if (address !== undefined && !input.products.includes('shreds-raw')) {
    throw new ServiceError('invalid-value', 'a destination needs the product shreds-raw')
  }
  return runChange(on, async (tx) => {
    const customer = await lookUp(tx, 'customers', input.customer)
    if (customer.state === 'removed') {
      throw new ServiceError('wrong-state', `customer "${customer.name}" is removed`, {
        fix: `Bring it back first with: sluice customer resume ${customer.name}`,
      })
    }
    if ((await tx.find('subscriptions', { name })).length > 0) {
      throw new ServiceError('already-exists', `a subscription "${name}" already exists`)
    }
    const subscription: Subscription = {
      id: makeId('sub', on.random),
      revision: 0,
      customerId: customer.id,
      name,
      plan: input.plan,
      products: input.products,
      overrides: input.overrides,
      state: 'active',
      createdAt: on.nowMs,
      validUntil: input.validUntil,
    }
    if (address !== undefined) await checkAddressFree(tx, { subscriptionId: subscription.id, address, nowMs: on.nowMs })
    await tx.put('subscriptions', subscription)
    const needsToken = input.products.some((product) => TOKEN_PRODUCTS.includes(product))
    const token = needsToken ? await putNewToken(on, tx, subscription.id) : undefined
    const credential = input.products.includes('indexer') ? await putNewCredential(on, tx, subscription.id) : undefined
    const destination =
      address && newDestination(subscription.id, address, input.destination?.vouched === true, on.nowMs)
    if (destination !== undefined) await tx.put('destinations', destination)
    const subjects = [subscription.id, customer.id, token?.record.id, credential?.record.id]
    return {
      audit: {
        action: 'sub.create',
        subjects: subjects.filter((id) => id !== undefined),
        after: {
          name,
          customer: customer.name,
          plan: input.plan,
          products: input.products,
          overrides: input.overrides,
          validUntil: input.validUntil,
          ...(token === undefined ? {} : { token: { last4: token.record.last4 } }),
          ...(credential === undefined ? {} : { indexerUser: credential.record.username }),
          ...(destination === undefined
            ? {}
            : { destination: printAddressPort(destination.ip, destination.port), proof: destination.proof }),
        },
      },
      result: { customer, subscription, token, credential, destination },
    }
  })
}

/** Parses a list of products such as `bundle,indexer`; refuses products that are not offered or need no subscription. */
export function parseProducts(text: string, offered: ReadonlySet<ProductKey>): ProductKey[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (names.length === 0) throw new ServiceError('invalid-value', 'name at least one product')
  const products = new Set<ProductKey>()
  for (const name of names) {
    if (!isProductKey(name)) {
      const near = didYouMean(name, PRODUCT_KEYS)
      const hint = near === undefined ? '' : `, did you mean "${near}"?`
      throw new ServiceError('invalid-value', `"${name}" is not a product${hint}`, {
        fix: `Products: ${PRODUCT_KEYS.join(', ')}`,
      })
    }
    const { provisioned, title, authorization } = PRODUCTS[name]
    if (!offered.has(name))
      throw new ServiceError('coming-soon', `${title} is coming soon and cannot be provisioned yet`)
    if (!provisioned) throw new ServiceError('invalid-value', `${title} needs no subscription: ${authorization}`)
    products.add(name)
  }
  return [...products]
}

/** Overrides limits of this subscription. */
export async function limitSubscription(
  on: Provisioning,
  input: { subscription: string; overrides: LimitChanges; plan?: string | undefined },
): Promise<Subscription> {
  return changeSubscription(on, input.subscription, {
    action: 'sub.limit',
    from: ['active', 'suspended'],
    change: (before) => ({
      ...before,
      overrides: mergeOverrides(before.overrides, input.overrides),
      plan: input.plan ?? before.plan,
    }),
  })
}

export async function renewSubscription(
  on: Provisioning,
  input: { subscription: string; validUntil: number | null },
): Promise<Subscription> {
  refusePast(input.validUntil, on.nowMs)
  return changeSubscription(on, input.subscription, {
    action: 'sub.renew',
    from: ['active', 'suspended'],
    change: (before) => ({ ...before, validUntil: input.validUntil }),
  })
}

export async function suspendSubscription(on: Provisioning, input: { subscription: string }): Promise<Subscription> {
  return changeSubscription(on, input.subscription, {
    action: 'sub.suspend',
    from: ['active'],
    change: (before) => ({ ...before, state: 'suspended' }),
  })
}

export async function resumeSubscription(on: Provisioning, input: { subscription: string }): Promise<Subscription> {
  return changeSubscription(on, input.subscription, {
    action: 'sub.resume',
    from: ['suspended'],
    change: (before) => ({ ...before, state: 'active' }),
  })
}

/** Ends the subscription for good: revokes its tokens and database users and releases its nodes. */
export async function cancelSubscription(on: Provisioning, input: { subscription: string }): Promise<Subscription> {
  return changeSubscription(on, input.subscription, {
    action: 'sub.cancel',
    from: ['active', 'suspended'],
    change: (before) => ({ ...before, state: 'cancelled' }),
    also: (tx, { id }) => endAccess(on, tx, id),
  })
}

/** Cancels a subscription within another change. */
export async function endSubscription(on: Provisioning, tx: AccessTransaction, live: Subscription): Promise<void> {
  await tx.put('subscriptions', { ...live, state: 'cancelled' })
  await endAccess(on, tx, live.id)
}

async function endAccess(on: Provisioning, tx: AccessTransaction, id: string): Promise<void> {
  await endTokens(tx, id, on.nowMs, 0)
  await endCredentials(tx, id)
  await releaseNodes(tx, id)
}

async function releaseNodes(tx: AccessTransaction, subscriptionId: string): Promise<void> {
  for (const node of await tx.find('nodes', { subscriptionId }))
    await tx.put('nodes', { ...node, subscriptionId: null })
}

/** Adds a product. The token stays the same; a database user or destination is set up afterwards. */
export async function addProduct(
  on: Provisioning,
  input: { subscription: string; product: ProductKey },
): Promise<Subscription> {
  const { product } = input
  return changeSubscription(on, input.subscription, {
    action: 'sub.add-product',
    from: ['active', 'suspended'],
    change(before) {
      if (before.products.includes(product)) throw wrongProducts(before, `includes ${product} already`)
      return { ...before, products: [...before.products, product] }
    },
  })
}

/** Removes a product with what belongs to it alone: database users of the indexer, assigned nodes. A destination stays recorded and unused. */
export async function removeProduct(
  on: Provisioning,
  input: { subscription: string; product: ProductKey },
): Promise<Subscription> {
  const { product } = input
  return changeSubscription(on, input.subscription, {
    action: 'sub.remove-product',
    from: ['active', 'suspended'],
    change(before) {
      if (!before.products.includes(product)) throw wrongProducts(before, `does not include ${product}`)
      const products = before.products.filter((other) => other !== product)
      if (products.length > 0) return { ...before, products }
      throw new ServiceError('wrong-state', `${product} is the only product of subscription "${before.name}"`, {
        fix: `Add another one first, or cancel the subscription with: sluice sub cancel ${before.name}`,
      })
    },
    also: async (tx, { id }) => {
      if (product === 'indexer') await endCredentials(tx, id)
      if (product === 'dedicated-node') await releaseNodes(tx, id)
    },
  })
}

function wrongProducts({ name, products }: Subscription, what: string): ServiceError {
  return new ServiceError('wrong-state', `subscription "${name}" ${what}`, {
    fix: `Its products: ${products.join(', ')}`,
  })
}

const STATE_FIXES: Record<Subscription['state'], string> = {
  active: 'Nothing needs to be done.',
  suspended: 'Serve it again with: sluice sub resume',
  cancelled: 'A cancelled subscription stays cancelled; create a new one with: sluice sub create',
}

/** An active record alone does not mean that the subscription is served. */
function wrongState(subscription: Subscription, customer: Customer | undefined, nowMs: number): ServiceError {
  const { name, state } = subscription
  const refused = (message: string, fix: string) =>
    new ServiceError('wrong-state', `subscription "${name}" ${message}`, { fix })
  const effective = stateOf(subscription, customer, nowMs)
  if (effective === 'expired')
    return refused('is not suspended, it has expired', `Extend it with: sluice sub renew ${name} --until DATE`)
  if (effective === 'customer-suspended' && customer !== undefined)
    return refused(
      `is not suspended itself, but its customer "${customer.name}" is`,
      `Serve the customer again with: sluice customer resume ${customer.name}`,
    )
  return refused(`is ${state}`, STATE_FIXES[state])
}

function refusePast(validUntil: number | null, nowMs: number): void {
  if (validUntil === null || validUntil > nowMs) return
  throw new ServiceError('invalid-value', 'the end is in the past', {
    fix: 'Give a future date, a time span such as 30d, or never.',
  })
}

type SubscriptionChange = {
  action: string
  /** The states in which the change is allowed. */
  from: readonly Subscription['state'][]
  change(before: Subscription): Subscription
  also?(tx: AccessTransaction, after: Subscription): Promise<void>
}

async function changeSubscription(on: Provisioning, idOrName: string, how: SubscriptionChange): Promise<Subscription> {
  return runChange(on, async (tx) => {
    const before = await lookUpToChange(on, tx, 'subscriptions', idOrName)
    if (!how.from.includes(before.state)) {
      throw wrongState(before, await tx.get('customers', before.customerId), on.nowMs)
    }
    const after = how.change(before)
    await tx.put('subscriptions', after)
    await how.also?.(tx, after)
    const audit = { action: how.action, subjects: [before.id], before: changeable(before), after: changeable(after) }
    return { audit, result: after }
  })
}

function changeable({ plan, products, overrides, state, validUntil }: Subscription): object {
  return { plan, products, overrides, state, validUntil }
}
