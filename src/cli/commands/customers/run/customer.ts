import { lookUp } from '../../../../access/provisioning/context.ts'
import {
  addCustomer,
  listNames,
  liveOf,
  removeCustomer,
  renameCustomer,
  setContact,
  setCustomerState,
} from '../../../../access/provisioning/customers.ts'
import { addNote } from '../../../../access/provisioning/notes.ts'
import { isoTime } from '../../../../contract/wire-json.ts'
import { ServiceError } from '../../../../core/error.ts'
import { printTime } from '../../../dates.ts'
import type { ChangeFlags, CliContext, CommonFlags, CutFlags, FirstFlags, ListFlags } from '../../../define.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printFacts, printJson, printList } from '../../../output/print.ts'
import { done, openSession, reportChange } from '../../../session.ts'

export async function addCustomerCommand(
  this: CliContext,
  flags: FirstFlags & { contact?: string },
  name: string,
): Promise<void> {
  await using session = await openSession(this, flags, flags.createStore === true ? 'create' : 'write')
  const customer = await addCustomer(session.provisioning(flags), { name, contact: flags.contact ?? '' })
  const { id } = customer
  reportChange(this, flags, customer, `customer ${name} added (${id}); next: sluice sub create NAME --customer ${name}`)
}

const BILLING_ID = /^[\x21-\x7e]{1,200}$/

export async function billingIdCommand(
  this: CliContext,
  flags: ChangeFlags,
  idOrName: string,
  id: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  if (id !== '' && !BILLING_ID.test(id))
    throw new ServiceError('invalid-value', 'a billing id has 1 to 200 printable characters without spaces')
  const { id: customerId, name } = await lookUp(session.store, 'customers', idOrName)
  const billingId = id === '' ? null : id
  if (flags.dryRun !== true)
    await session.store.billing.setBillingId(session.provisioning(flags), customerId, billingId)
  const sentence =
    billingId === null ? `customer ${name} has no billing id` : `customer ${name} is ${id} in the billing system`
  if (flags.dryRun === true) done(this, flags, sentence)
  else reportChange(this, flags, { customer: name, customerId, billingId }, sentence)
}

export async function listCustomers(this: CliContext, flags: ListFlags & { all?: boolean }): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const customers = (await session.store.list('customers')).filter(
    ({ state }) => flags.all === true || state !== 'removed',
  )
  const counts = new Map<string, number>()
  for (const { customerId } of await session.store.list('subscriptions'))
    counts.set(customerId, (counts.get(customerId) ?? 0) + 1)
  printList(this, flags, {
    rows: customers.toSorted((a, b) => a.name.localeCompare(b.name)),
    empty: 'no customers yet; add one with: sluice customer add NAME',
    columns: [
      { title: 'NAME', value: (row) => row.name },
      { title: 'STATE', value: (row) => row.state },
      { title: 'SUBSCRIPTIONS', value: (row) => counts.get(row.id) ?? 0 },
      { title: 'CONTACT', value: (row) => row.contact },
      { title: 'CREATED AT', value: (row) => isoTime(row.createdAt), show: (row) => printTime(row.createdAt) },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}

export async function showCustomer(this: CliContext, flags: CommonFlags, idOrName: string): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const customer = await lookUp(session.store, 'customers', idOrName)
  const subscriptions = await session.store.find('subscriptions', { customerId: customer.id })
  const notes = await session.store.find('notes', { subjectId: customer.id })
  if (flags.json === true) return printJson(this, { ...customer, subscriptions, notes })
  printFacts(this, [
    ['customer', customer.name],
    ['id', customer.id],
    ['state', customer.state],
    ['contact', customer.contact],
    ['created', printTime(customer.createdAt)],
    ...subscriptions.map(
      (sub) => ['subscription', `${sub.name}  ${sub.plan}  ${sub.products.join(',')}  ${sub.state}`] as const,
    ),
    ...notes.map((note) => ['note', `${printTime(note.createdAt)}  ${note.text}`] as const),
  ])
}

export async function renameCustomerCommand(
  this: CliContext,
  flags: ChangeFlags,
  idOrName: string,
  name: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const customer = await renameCustomer(session.provisioning(flags), { customer: idOrName, name })
  reportChange(this, flags, customer, `customer ${idOrName} is now called ${customer.name}`)
}

export async function contactCommand(
  this: CliContext,
  flags: ChangeFlags,
  idOrName: string,
  contact: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const customer = await setContact(session.provisioning(flags), { customer: idOrName, contact })
  const now = customer.contact === '' ? 'has no contact details now' : `has the contact ${customer.contact}`
  reportChange(this, flags, customer, `customer ${customer.name} ${now}`)
}

/** Subscriptions that are read for a question. */
const LISTED_MAX = 100

export async function removeCustomerCommand(
  this: CliContext,
  flags: CutFlags & { force?: boolean },
  idOrName: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const input = { customer: idOrName, force: flags.force === true }
  const found = await lookUp(session.store, 'customers', idOrName)
  const live = await liveOf(session.store, found.id, { limit: LISTED_MAX })
  const names = live.items.map(({ name }) => name)
  if (names.length > 0 && input.force) {
    const listed = listNames(names, live)
    await confirmCut(this, flags, `this removes customer ${found.name} and cancels permanently: ${listed}`)
  }
  const { customer, cancelled } = await removeCustomer(session.provisioning(flags), input)
  if (flags.json === true && flags.dryRun !== true)
    return printJson(this, { ...customer, cancelled: cancelled.map(({ id, name }) => ({ id, name })) })
  const ended = cancelled.map(({ name }) => name)
  const also = ended.length === 0 ? '' : ` and cancelled: ${listNames(ended, { next: null })}`
  done(this, flags, `customer ${customer.name} removed${also}; usage and audit log are kept`)
}

export async function suspendCustomer(this: CliContext, flags: CutFlags, idOrName: string): Promise<void> {
  await using session = await openSession(this, flags)
  const found = await lookUp(session.store, 'customers', idOrName)
  const subscriptions = await session.store.find('subscriptions', { customerId: found.id })
  const live = subscriptions.filter((sub) => sub.state === 'active').length
  await confirmCut(
    this,
    flags,
    `this refuses every call of customer ${found.name} and closes the streams of ${live} subscription(s)`,
  )
  const customer = await setCustomerState(session.provisioning(flags), { customer: found.id, state: 'suspended' })
  reportChange(this, flags, customer, `customer ${customer.name} suspended`)
}

export async function resumeCustomer(this: CliContext, flags: ChangeFlags, idOrName: string): Promise<void> {
  await using session = await openSession(this, flags)
  const customer = await setCustomerState(session.provisioning(flags), { customer: idOrName, state: 'active' })
  reportChange(this, flags, customer, `customer ${customer.name} resumed`)
}

export async function noteCommand(this: CliContext, flags: ChangeFlags, subject: string, text: string): Promise<void> {
  await using session = await openSession(this, flags)
  const note = await addNote(session.provisioning(flags), { subject, text })
  reportChange(this, flags, note, `note added (${note.id})`)
}
