import { ServiceError } from '../../core/error.ts'
import { redactText } from '../../core/redact.ts'
import type { Customer, Subscription } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { lookUpToChange, makeId, type Provisioning, parseName, runChange } from './context.ts'
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

/** Removes a customer. With live subscriptions only if `force` cancels them. Usage and audit log are kept. */
export async function removeCustomer(
  on: Provisioning,
  input: { customer: string; force: boolean },
): Promise<{ customer: Customer; cancelled: readonly Subscription[] }> {
  let cancelled: Subscription[] = []
  const customer = await changeCustomer(on, input.customer, async (tx, found) => {
    if (found.state === 'removed')
      throw new ServiceError('wrong-state', `customer "${found.name}" is removed already`, { fix: NOTHING_TO_DO })
    cancelled = liveOf(await tx.find('subscriptions', { customerId: found.id }))
    const names = cancelled.map(({ name }) => name)
    if (cancelled.length > 0 && !input.force) {
      throw new ServiceError('wrong-state', `customer "${found.name}" has subscriptions: ${names.join(', ')}`, {
        fix: `Cancel each with: sluice sub cancel NAME. Or cancel all of them with: sluice customer remove ${found.name} --force`,
      })
    }
    for (const subscription of cancelled) await endSubscription(on, tx, subscription)
    return {
      action: 'customer.remove',
      changes: { state: 'removed' },
      subjects: cancelled.map(({ id }) => id),
      ...(names.length === 0 ? {} : { also: { cancelled: names } }),
    }
  })
  return { customer, cancelled }
}

/** Subscriptions that are not cancelled; an expired one can still be renewed. */
export function liveOf(subscriptions: readonly Subscription[]): Subscription[] {
  return subscriptions.filter(({ state }) => state !== 'cancelled')
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
