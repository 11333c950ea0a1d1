import { ServiceError } from '../../core/error.ts'
import { redactText } from '../../core/redact.ts'
import type { Customer, Subscription } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { lookUp, lookUpToChange, makeId, type Provisioning, parseName, runChange } from './context.ts'
import { endSubscription } from './subscriptions.ts'

const CONTACT_CHARACTERS_MAX = 200

export async function addCustomer(on: Provisioning, input: { name: string; contact: string }): Promise<Customer> {
  const name = parseName(input.name, 'customer')
  const contact = parseContact(input.contact)
  return runChange(on, async (tx) => {
    await refuseTaken(tx, name)
    const customer: Customer = {
      id: makeId('cus', on.random),
      revision: 0,
      name,
      contact,
      state: 'active',
      createdAt: on.nowMs,
    }
    await tx.put('customers', customer)
    return { audit: { action: 'customer.add', subjects: [customer.id], after: { name, contact } }, result: customer }
  })
}

/** Gives the customer another name. Its id, and with it tokens, usage and audit log, stay. */
export async function renameCustomer(on: Provisioning, input: { customer: string; name: string }): Promise<Customer> {
  const name = parseName(input.name, 'customer')
  return changeCustomer(on, input.customer, async (tx, customer) => {
    if (customer.name === name)
      throw new ServiceError('wrong-state', `the customer has the name "${name}" already`, { fix: NOTHING_TO_DO })
    await refuseTaken(tx, name)
    return { action: 'customer.rename', changes: { name } }
  })
}

/** Replaces the contact details; an empty text removes them. */
export async function setContact(on: Provisioning, input: { customer: string; contact: string }): Promise<Customer> {
  const contact = parseContact(input.contact)
  return changeCustomer(on, input.customer, async () => ({ action: 'customer.contact', changes: { contact } }))
}

/**
 * All subscriptions of a suspended customer are refused until it is resumed; their own state does not change. Resuming a removed customer
 * brings it back without its cancelled subscriptions.
 */
export async function setCustomerState(
  on: Provisioning,
  input: { customer: string; state: 'active' | 'suspended' },
): Promise<Customer> {
  const { state } = input
  return changeCustomer(on, input.customer, async (_tx, customer) => {
    if (customer.state === state || (customer.state === 'removed' && state === 'suspended')) {
      throw new ServiceError('wrong-state', `customer "${customer.name}" is ${customer.state} already`, {
        fix: state === 'active' ? NOTHING_TO_DO : `Serve it again with: sluice customer resume ${customer.name}`,
      })
    }
    return { action: state === 'suspended' ? 'customer.suspend' : 'customer.resume', changes: { state } }
  })
}

/** Subscriptions that one change cancels: it holds the write lock and the event loop for a moment only. */
const CANCELLED_AT_ONCE_MAX = 40

/**
 * Removes a customer. With live subscriptions only if `force` cancels them. Usage and audit log are kept. Of very many subscriptions, most are cancelled by
 * changes before the one that removes the customer, each with its audit line. Where the process ends between two changes, the customer has fewer
 * subscriptions, and removing it again does the rest.
 */
export async function removeCustomer(
  on: Provisioning,
  input: { customer: string; force: boolean },
): Promise<{ customer: Customer; cancelled: readonly Subscription[] }> {
  const { id } = await lookUp(on.store, 'customers', input.customer)
  const cancelled: Subscription[] = []
  if (input.force && on.dryRun !== true) {
    let after: string | null = ''
    while (after !== null) after = await cancelSome(on, id, after, cancelled)
  }
  const customer = await changeCustomer(on, id, async (tx, found) => {
    refuseRemoved(found)
    // Those that are left, and those that were created meanwhile. A dry run has all of them here, and changes none.
    const limit = input.force && on.dryRun === true ? DRY_RUN_MAX : CANCELLED_AT_ONCE_MAX
    const live = await liveOf(tx, id, { limit })
    const names = live.items.map(({ name }) => name)
    if (names.length > 0 && !input.force)
      throw new ServiceError(
        'wrong-state',
        `customer "${found.name}" has subscriptions: ${listNames(names, { hasMore: live.next !== null })}`,
        {
          fix: `Cancel each with: sluice sub cancel NAME. Or cancel all of them with: sluice customer remove ${found.name} --force`,
        },
      )
    if (live.next !== null && on.dryRun !== true)
      throw new ServiceError('wrong-state', `customer "${found.name}" gets new subscriptions while it is removed`, {
        fix: 'Stop what creates them, then remove the customer again.',
      })
    if (on.dryRun !== true) for (const subscription of live.items) await endSubscription(on, tx, subscription)
    cancelled.push(...live.items)
    return {
      action: 'customer.remove',
      changes: { state: 'removed' },
      subjects: live.items.map((subscription) => subscription.id),
      ...(names.length === 0 ? {} : { also: { cancelled: names } }),
    }
  })
  return { customer, cancelled }
}

/** Subscriptions that a dry run lists. */
const DRY_RUN_MAX = 1000

/** Cancels the next subscriptions of a customer that has more than one change may cancel. Returns the name after which others follow; null where so few are left. */
async function cancelSome(
  on: Provisioning,
  customerId: string,
  after: string,
  cancelled: Subscription[],
): Promise<string | null> {
  const ahead = await liveOf(on.store, customerId, { after, limit: CANCELLED_AT_ONCE_MAX })
  if (ahead.next === null) return null
  const { items, next } = await runChange(on, async (tx) => {
    const customer = await lookUpToChange(on, tx, 'customers', customerId)
    refuseRemoved(customer)
    const live = await liveOf(tx, customerId, { after, limit: CANCELLED_AT_ONCE_MAX })
    for (const subscription of live.items) await endSubscription(on, tx, subscription)
    const names = live.items.map(({ name }) => name)
    const subjects = [...live.items.map(({ id }) => id), customerId]
    return { audit: { action: 'sub.cancel', subjects, after: { state: 'cancelled', cancelled: names } }, result: live }
  })
  cancelled.push(...items)
  return next
}

function refuseRemoved({ state, name }: Customer): void {
  if (state === 'removed')
    throw new ServiceError('wrong-state', `customer "${name}" is removed already`, { fix: NOTHING_TO_DO })
}

type LiveSubscriptions = {
  readonly items: readonly Subscription[]
  /** The name after which others follow; null where there are none. */
  readonly next: string | null
}

/** The first subscriptions of a customer that are not cancelled; an expired one can still be renewed. */
async function liveOf(
  from: Pick<AccessTransaction, 'page'>,
  customerId: string,
  { after = '', limit }: { readonly after?: string; readonly limit: number },
): Promise<LiveSubscriptions> {
  const items: Subscription[] = []
  let next: string | null = after
  // A page may have fewer, although others follow.
  while (next !== null && items.length < limit) {
    const page: LiveSubscriptions = await from.page('subscriptions', {
      after: next,
      limit: limit - items.length,
      where: { customerId },
      having: { state: ['active', 'suspended'] },
      isIncluded: ({ state }) => state !== 'cancelled',
    })
    items.push(...page.items)
    next = page.next
  }
  return { items, next }
}

/** Names in a message. */
const NAMES_LISTED_MAX = 20

/** The names of the first, and whether there are others. */
export function listNames(names: readonly string[], { hasMore }: { readonly hasMore: boolean }): string {
  const listed = names.slice(0, NAMES_LISTED_MAX)
  return [...listed, ...(listed.length < names.length || hasMore ? ['and others'] : [])].join(', ')
}

const NOTHING_TO_DO = 'Nothing needs to be done.'

function parseContact(text: string): string {
  const contact = redactText(text.trim())
  if (contact.length > CONTACT_CHARACTERS_MAX)
    throw new ServiceError('invalid-value', `a contact has at most ${CONTACT_CHARACTERS_MAX} characters`)
  return contact
}

async function refuseTaken(tx: AccessTransaction, name: string): Promise<void> {
  const [taken] = await tx.find('customers', { name })
  if (taken === undefined) return
  if (taken.state !== 'removed') throw new ServiceError('already-exists', `a customer "${name}" already exists`)
  throw new ServiceError('already-exists', `a removed customer has the name "${name}"`, {
    fix: `Bring it back with: sluice customer resume ${name}. Or give it another name with: sluice customer rename ${name} NEW`,
  })
}

type CustomerChange = {
  readonly action: string
  readonly changes: Partial<Customer>
  /** Other records that the change concerns. */
  readonly subjects?: readonly string[]
  /** Further facts for the audit log. */
  readonly also?: object
}

async function changeCustomer(
  on: Provisioning,
  idOrName: string,
  decide: (tx: AccessTransaction, customer: Customer) => Promise<CustomerChange>,
): Promise<Customer> {
  return runChange(on, async (tx) => {
    const customer = await lookUpToChange(on, tx, 'customers', idOrName)
    const { action, changes, subjects = [], also } = await decide(tx, customer)
    const changed: Customer = { ...customer, ...changes }
    await tx.put('customers', changed)
    const before = Object.fromEntries(Object.keys(changes).map((name) => [name, customer[name as keyof Customer]]))
    const audit = { action, subjects: [customer.id, ...subjects], before, after: { ...changes, ...also } }
    return { audit, result: changed }
  })
}
