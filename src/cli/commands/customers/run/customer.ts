import { wireSubscription } from '../../../../access/limit-rules.ts'
import { listNames } from '../../../../access/provisioning/customers.ts'
import { parseBillingId } from '../../../../admin/billing/billing-id.ts'
import { isoTime } from '../../../../contract/wire-json.ts'
import { printTime } from '../../../dates.ts'
import type {
  ChangeFlags,
  CliContext,
  CommonFlags,
  ConfirmFlags,
  CreateStoreFlags,
  ListFlags,
} from '../../../define.ts'
import { customers, SUBSCRIPTIONS_SHOWN } from '../../../operations/customers.ts'
import { openOperations } from '../../../operations/open.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printFacts, printJson, printList, write } from '../../../output/print.ts'
import { done, reportChange } from '../../../output/report-change.ts'

export async function addCustomerCommand(
  this: CliContext,
  flags: CreateStoreFlags & { contact?: string },
  name: string,
): Promise<void> {
  await using on = await openOperations(customers, this, flags, flags.createStore === true ? 'create' : 'write')
  const customer = await on.add({ name, contact: flags.contact ?? '' })
  const { id } = customer
  reportChange(this, flags, customer, `customer ${name} added (${id}); next: sluice sub create NAME --customer ${name}`)
}

export async function billingIdCommand(
  this: CliContext,
  flags: ChangeFlags,
  idOrName: string,
  id: string,
): Promise<void> {
  await using on = await openOperations(customers, this, flags)
  const billingId = parseBillingId(id)
  const { id: customerId, name } = await on.setBillingId({ customer: idOrName, billingId })
  const sentence =
    billingId === null ? `customer ${name} has no billing id` : `customer ${name} is ${id} in the billing system`
  if (flags.dryRun === true) done(this, flags, sentence)
  else reportChange(this, flags, { customer: name, customerId, billingId }, sentence)
}

export async function listCustomers(this: CliContext, flags: ListFlags & { all?: boolean }): Promise<void> {
  await using on = await openOperations(customers, this, flags, 'read')
  const rows = await on.list({ isRemovedIncluded: flags.all === true })
  printList(this, flags, {
    rows: rows.toSorted((a, b) => a.name.localeCompare(b.name)),
    empty: 'no customers yet; add one with: sluice customer add NAME',
    columns: [
      { title: 'NAME', value: (row) => row.name },
      { title: 'STATE', value: (row) => row.state },
      { title: 'SUBSCRIPTIONS', value: (row) => row.subscriptions },
      { title: 'CONTACT', value: (row) => row.contact },
      { title: 'CREATED AT', value: (row) => isoTime(row.createdAt), show: (row) => printTime(row.createdAt) },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}

export async function showCustomer(this: CliContext, flags: CommonFlags, idOrName: string): Promise<void> {
  await using on = await openOperations(customers, this, flags, 'read')
  const { customer, subscriptions, notes, hasMoreSubscriptions } = await on.show(idOrName)
  if (hasMoreSubscriptions)
    write(
      this,
      `the first ${SUBSCRIPTIONS_SHOWN} subscriptions; list all with: sluice sub list --customer ${customer.name}`,
    )
  if (flags.json === true)
    return printJson(this, { ...customer, subscriptions: subscriptions.map(wireSubscription), notes })
  printFacts(this, [
    ['customer', customer.name],
    ['id', customer.id],
    ['state', customer.state],
    ['contact', customer.contact],
    ['created', printTime(customer.createdAt)],
    ...subscriptions.map(
      ({ name, plan, products, state, effectiveState = state }) =>
        ['subscription', `${name}  ${plan}  ${products.join(',')}  ${effectiveState}`] as const,
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
  await using on = await openOperations(customers, this, flags)
  const customer = await on.rename({ customer: idOrName, name })
  reportChange(this, flags, customer, `customer ${idOrName} is now called ${customer.name}`)
}

export async function contactCommand(
  this: CliContext,
  flags: ChangeFlags,
  idOrName: string,
  contact: string,
): Promise<void> {
  await using on = await openOperations(customers, this, flags)
  const customer = await on.setContact({ customer: idOrName, contact })
  const now = customer.contact === '' ? 'has no contact details now' : `has the contact ${customer.contact}`
  reportChange(this, flags, customer, `customer ${customer.name} ${now}`)
}

export async function removeCustomerCommand(
  this: CliContext,
  flags: ConfirmFlags & { force?: boolean },
  idOrName: string,
): Promise<void> {
  await using on = await openOperations(customers, this, flags)
  const input = { customer: idOrName, force: flags.force === true }
  const { customer: found, subscriptions, hasMoreSubscriptions } = await on.show(idOrName)
  const names = subscriptions.filter(({ state }) => state !== 'cancelled').map(({ name }) => name)
  if (names.length > 0 && input.force) {
    const listed = listNames(names, { hasMore: hasMoreSubscriptions })
    await confirmCut(this, flags, `this removes customer ${found.name} and cancels permanently: ${listed}`)
  }
  const { customer, cancelled, cancelledCount } = await on.remove(input)
  if (flags.json === true && flags.dryRun !== true)
    return printJson(this, { ...customer, cancelled: cancelled.map(({ id, name }) => ({ id, name })) })
  const ended = cancelled.map(({ name }) => name)
  const also =
    ended.length === 0 ? '' : ` and cancelled: ${listNames(ended, { hasMore: cancelledCount > ended.length })}`
  done(this, flags, `customer ${customer.name} removed${also}; usage and audit log are kept`)
}

export async function suspendCustomer(this: CliContext, flags: ConfirmFlags, idOrName: string): Promise<void> {
  await using on = await openOperations(customers, this, flags)
  const { customer: found, subscriptions, hasMoreSubscriptions } = await on.show(idOrName)
  const count = subscriptions.filter((sub) => sub.state === 'active').length
  const live = hasMoreSubscriptions ? `more than ${count}` : count
  await confirmCut(
    this,
    flags,
    `this refuses every call of customer ${found.name} and closes the streams of ${live} subscription(s)`,
  )
  const customer = await on.setState({ customer: found.id, state: 'suspended' })
  reportChange(this, flags, customer, `customer ${customer.name} suspended`)
}

export async function resumeCustomer(this: CliContext, flags: ChangeFlags, idOrName: string): Promise<void> {
  await using on = await openOperations(customers, this, flags)
  const customer = await on.setState({ customer: idOrName, state: 'active' })
  reportChange(this, flags, customer, `customer ${customer.name} resumed`)
}

export async function noteCommand(this: CliContext, flags: ChangeFlags, subject: string, text: string): Promise<void> {
  await using on = await openOperations(customers, this, flags)
  const note = await on.addNote({ subject, text })
  reportChange(this, flags, note, `note added (${note.id})`)
}
