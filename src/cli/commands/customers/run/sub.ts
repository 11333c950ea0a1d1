import { existsSync } from 'node:fs'
import { isSubscriptionState, SUBSCRIPTION_STATES, type SubscriptionState } from '../../../../access/effective-state.ts'
import { wireLimits, wireSubscription } from '../../../../access/limit-rules.ts'
import { parseProducts } from '../../../../access/provisioning/subscriptions.ts'
import type { Subscription } from '../../../../access/store/model.ts'
import { displayToken } from '../../../../access/token.ts'
import { isoTime, toWireJson } from '../../../../contract/wire-json.ts'
import { ServiceError } from '../../../../core/error.ts'
import { parseDuration } from '../../../../core/human-units.ts'
import { printAddressPort } from '../../../../platform/net/ip-range.ts'
import { printTime, printUntil } from '../../../dates.ts'
import type { ChangeFlags, CliContext, CommonFlags, ConfirmFlags, ListFlags, SecretFlags } from '../../../define.ts'
import { findOffered } from '../../../operations/catalogue.ts'
import { openOperations } from '../../../operations/open.ts'
import { type ListedSubscription, subscriptions } from '../../../operations/subscriptions.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printFacts, printJson, printList, write } from '../../../output/print.ts'
import { done, reportChange } from '../../../output/report-change.ts'
import { secretLocation } from '../../../output/secret-output.ts'
import { type LimitFlags, overridesOf, printLimits } from '../limits.ts'
import { reportSub } from './report-sub.ts'
import { printTokenState } from './token-state.ts'

export type CreateFlags = SecretFlags &
  LimitFlags & {
    readonly customer: string
    readonly plan?: string
    readonly products?: string
    readonly until?: string
    readonly destination?: string
    readonly vouched?: boolean
  }

export async function createSub(this: CliContext, flags: CreateFlags, name: string): Promise<void> {
  if (flags.vouched === true && flags.destination === undefined) {
    throw new ServiceError('usage', '--vouched needs --destination', { fix: 'Add --destination IP:PORT' })
  }
  const products = parseProducts(flags.products ?? 'bundle', await findOffered(this, flags))
  const bringsSecret = products.some((product) => product !== 'shreds-raw')
  using output = bringsSecret || flags.out !== undefined ? secretLocation(this, flags) : undefined
  await using on = await openOperations(subscriptions, this, flags)
  const { subscription, customer, limits, destination, token, indexer, card, notes } = await on.create({
    customer: flags.customer,
    name,
    plan: flags.plan ?? 'starter',
    products,
    overrides: overridesOf(flags),
    until: flags.until,
    destination:
      flags.destination === undefined ? undefined : { address: flags.destination, vouched: flags.vouched === true },
  })
  if (flags.dryRun === true) return done(this, flags, `subscription ${subscription.name} would be created`)
  const reveal = (text: string) => (output === undefined ? this.process.stdout.write(text) : output.reveal(text))
  if (flags.json === true) {
    const secrets = { ...(token === undefined ? {} : { token }), ...(indexer === undefined ? {} : { indexer }) }
    const shown = { ...wireSubscription(subscription), customer, limits: wireLimits(limits), destination }
    reveal(`${JSON.stringify({ ...(toWireJson(shown) as object), ...secrets }, null, 2)}\n`)
  } else {
    reveal(card ?? '')
    if (destination?.proof === 'unproven')
      done(this, flags, 'nothing is sent to the destination until it echoes its challenge')
    if (products.includes('dedicated-node')) done(this, flags, withoutNode(subscription))
    for (const note of notes) write(this, `note: ${note}`)
  }
}

/** What happens until a node is assigned, and how to assign one. */
function withoutNode({ name, products }: Subscription): string {
  const until = products.includes('bundle')
    ? 'it uses the shared nodes until a dedicated node is assigned'
    : 'its calls are refused as not-assigned until a node is assigned'
  return `${until}: sluice node add NODE --rpc URL, then sluice node assign NODE ${name}`
}

export async function listSubs(
  this: CliContext,
  flags: ListFlags & { customer?: string; stateIs?: string; ending?: string },
): Promise<void> {
  const spanMs = flags.ending === undefined ? undefined : parseEnding(flags.ending)
  refuseStateOfFolder(flags)
  if (flags.stateIs !== undefined && !isSubscriptionState(flags.stateIs)) {
    throw new ServiceError(
      'invalid-value',
      `"${flags.stateIs}" is not a state: use one of ${SUBSCRIPTION_STATES.join(', ')}`,
    )
  }
  await using on = await openOperations(subscriptions, this, flags, 'read')
  const ending = flags.ending === undefined || spanMs === undefined ? undefined : { text: flags.ending, spanMs }
  const rows = await on.list({ customer: flags.customer, state: flags.stateIs, ending })
  const endOf = (row: ListedSubscription) => (spanMs === undefined ? 0 : (row.validUntil ?? 0))
  printList(this, flags, {
    rows: rows.toSorted((a, b) => endOf(a) - endOf(b) || a.name.localeCompare(b.name)),
    empty: emptyText(flags),
    columns: [
      { title: 'NAME', value: (row) => row.name },
      { title: 'CUSTOMER', value: (row) => row.customer },
      { title: 'PLAN', value: (row) => row.plan },
      { title: 'PRODUCTS', value: (row) => row.products },
      { title: 'STATE', value: (row) => row.state },
      { title: 'VALID UNTIL', value: (row) => isoTime(row.validUntil), show: (row) => printUntil(row.validUntil) },
      {
        title: 'CREATED AT',
        value: (row) => isoTime(row.createdAt),
        show: (row) => printTime(row.createdAt),
        wide: true,
      },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}

function emptyText({ customer, stateIs, ending }: { customer?: string; stateIs?: string; ending?: string }): string {
  const of = customer === undefined ? '' : ` of ${customer}`
  if (ending !== undefined)
    return `no subscription${of}${stateIs === undefined ? '' : ` that is ${stateIs}`} ends within ${ending}`
  if (stateIs !== undefined) return `no subscription${of} is ${stateIs}`
  return `no subscriptions${of}; create one with: sluice sub create NAME --customer ${customer ?? 'CUSTOMER'}`
}

/** `--state` names the state folder in every command. */
function refuseStateOfFolder({ state }: CommonFlags): void {
  if (state === undefined || !isSubscriptionState(state) || existsSync(state)) return
  throw new ServiceError('usage', `--state is the state folder, and there is no folder ${state}`, {
    fix: `For subscriptions in this state: --state-is ${state}`,
  })
}

function parseEnding(text: string): number {
  const spanMs = parseDuration(text)
  if (spanMs !== undefined && spanMs > 0) return spanMs
  throw new ServiceError('invalid-value', `"${text}" is not a time span for --ending`, {
    fix: 'Write a number and a unit, for example: --ending 7d',
  })
}

export async function showSub(this: CliContext, flags: CommonFlags, idOrName: string): Promise<void> {
  await using on = await openOperations(subscriptions, this, flags, 'read')
  const { subscription, state, customer, limits, ...more } = await on.show(idOrName)
  if (flags.json === true) {
    return printJson(this, {
      ...wireSubscription(subscription),
      state,
      customer,
      limits: wireLimits(limits),
      ...more,
    })
  }
  const { tokens, destination, indexerUsers, nodes, notes, refunds } = more
  printFacts(this, [
    ['subscription', subscription.name],
    ['id', subscription.id],
    ['customer', customer],
    ['plan', subscription.plan],
    ['products', subscription.products.join(', ')],
    ['state', state],
    ['valid until', printUntil(subscription.validUntil)],
    ...tokens.map((token) => ['token', `${displayToken(token.last4)}  ${printTokenState(token, true)}`] as const),
    [
      'destination',
      destination &&
        `${printAddressPort(destination.ip, destination.port)}  ${destination.proof}${destination.paused ? '  paused' : ''}`,
    ],
    ...indexerUsers.map((username) => ['database user', username] as const),
    ...nodes.map((name) => ['dedicated node', name] as const),
    ...(nodes.length === 0 && subscription.products.includes('dedicated-node')
      ? [['dedicated node', `none; assign one with: sluice node assign NODE ${subscription.name}`] as const]
      : []),
    ...printLimits(limits, subscription.overrides),
    ...notes.map((note) => ['note', `${printTime(note.createdAt)}  ${note.text}`] as const),
    ...refunds.map(
      (row) => ['refund', `${printTime(row.createdAt)}  ${row.amount} ${row.currency}  ${row.reason}`] as const,
    ),
  ])
}

export async function renewSub(
  this: CliContext,
  flags: ChangeFlags & { until: string },
  idOrName: string,
): Promise<void> {
  await using on = await openOperations(subscriptions, this, flags)
  const subscription = await on.renew({ subscription: idOrName, until: flags.until })
  reportSub(this, flags, subscription, `is valid until ${printUntil(subscription.validUntil)}`)
}

export async function suspendSub(this: CliContext, flags: ConfirmFlags, idOrName: string): Promise<void> {
  await using on = await openOperations(subscriptions, this, flags)
  const found = await on.find(idOrName)
  await confirmCut(this, flags, `this refuses every call of ${found.name} and closes its open streams within 5 s`)
  reportSub(this, flags, await on.suspend(found.id), 'is suspended')
}

export async function resumeSub(this: CliContext, flags: ChangeFlags, idOrName: string): Promise<void> {
  await using on = await openOperations(subscriptions, this, flags)
  const resumed = await on.resume(idOrName)
  if (flags.json === true || flags.dryRun === true) return reportSub(this, flags, resumed, 'is active again')
  const { state, customer = resumed.customerId } = await on.show(resumed.id)
  const reason = STILL_REFUSED[state]?.(resumed.name, customer)
  reportSub(this, flags, resumed, reason === undefined ? 'is active again' : 'is not suspended any more')
  if (reason !== undefined) write(this, `its calls are still refused: ${reason}`)
}

/** Why a subscription that is resumed is not served. */
const STILL_REFUSED: { readonly [State in SubscriptionState]?: (name: string, customer: string) => string } = {
  expired: (name) => `it has expired; extend it with: sluice sub renew ${name} --until DATE`,
  'customer-suspended': (_name, customer) =>
    `customer ${customer} is suspended; serve it again with: sluice customer resume ${customer}`,
}

export async function cancelSub(this: CliContext, flags: ConfirmFlags, idOrName: string): Promise<void> {
  await using on = await openOperations(subscriptions, this, flags)
  const found = await on.find(idOrName)
  await confirmCut(
    this,
    flags,
    `this cancels ${found.name} permanently: token and database user are revoked, open streams close within 5 s`,
  )
  reportSub(this, flags, await on.cancel(found.id), 'is cancelled')
}

export async function refundSub(
  this: CliContext,
  flags: ChangeFlags & { reason: string },
  idOrName: string,
  amount: string,
  currency: string,
): Promise<void> {
  await using on = await openOperations(subscriptions, this, flags)
  const input = { subscription: idOrName, amount, currency, reason: flags.reason }
  const { refund, subscription } = await on.refund(input)
  const sentence = `refund of ${amount} ${currency} to ${subscription.name} recorded (${refund.id}); no money was moved`
  reportChange(this, flags, refund, sentence)
}
