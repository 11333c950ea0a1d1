import { isSubscriptionState, SUBSCRIPTION_STATES, stateOf } from '../../../../access/effective-state.ts'
import { endsWithin } from '../../../../access/ending.ts'
import { checkLimits, wireLimits } from '../../../../access/limit-rules.ts'
import { lookUp } from '../../../../access/provisioning/context.ts'
import { recordRefund } from '../../../../access/provisioning/notes.ts'
import {
  cancelSubscription,
  createSubscription,
  parseProducts,
  renewSubscription,
  resumeSubscription,
  suspendSubscription,
} from '../../../../access/provisioning/subscriptions.ts'
import type { Subscription } from '../../../../access/store/model.ts'
import { displayToken } from '../../../../access/token.ts'
import { parseUntil } from '../../../../contract/dates.ts'
import { offeredProducts } from '../../../../contract/product-options.ts'
import { isoTime } from '../../../../contract/wire-json.ts'
import { parseDuration } from '../../../../core/bytes.ts'
import { ServiceError } from '../../../../core/error.ts'
import { printAddressPort } from '../../../../platform/net/ip-range.ts'
import { handoverCard } from '../../../../processes/compose/access/handover-card.ts'
import { checkDestination } from '../../../../processes/compose/services/shreds.ts'
import { printTime, printUntil } from '../../../dates.ts'
import type { ChangeFlags, CliContext, CommonFlags, CutFlags, ListFlags, SecretFlags } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printFacts, printJson, printList, toWire, write } from '../../../output/print.ts'
import { secretLocation } from '../../../output/secret-output.ts'
import { done, openSession, reportChange } from '../../../session.ts'
import { type LimitFlags, overridesOf, printLimits } from '../limits.ts'
import { reportSub } from './report-sub.ts'

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
  const { config } = await findSettings(this, flags)
  const products = parseProducts(flags.products ?? 'bundle', offeredProducts(config.products))
  const bringsSecret = products.some((product) => product !== 'shreds-raw')
  using output = bringsSecret || flags.out !== undefined ? secretLocation(this, flags) : undefined
  await using session = await openSession(this, flags)
  if (flags.destination !== undefined) checkDestination(flags.destination, session)
  const plan = session.plan(flags.plan ?? 'starter')
  const overrides = overridesOf(flags)
  const notes = checkLimits(session.plans.limitsOf(plan.name, overrides), overrides)
  const created = await createSubscription(session.provisioning(flags), {
    customer: flags.customer,
    name,
    plan: plan.name,
    products,
    overrides,
    validUntil: flags.until === undefined ? null : parseUntil(flags.until, session.nowMs),
    destination:
      flags.destination === undefined ? undefined : { address: flags.destination, vouched: flags.vouched === true },
  })
  const { subscription, token, credential, destination } = created
  if (flags.dryRun === true) return done(this, flags, `subscription ${subscription.name} would be created`)
  const limits = session.limitsOf(subscription)
  const reveal = (text: string) => (output === undefined ? this.process.stdout.write(text) : output.reveal(text))
  if (flags.json === true) {
    const secrets = {
      ...(token === undefined ? {} : { token: token.secret }),
      ...(credential === undefined
        ? {}
        : { indexer: { username: credential.record.username, password: credential.password } }),
    }
    const shown = {
      ...subscription,
      customer: created.customer.name,
      limits: wireLimits(limits),
      destination: destination ?? null,
    }
    reveal(`${JSON.stringify({ ...(toWire(shown) as object), ...secrets }, null, 2)}\n`)
  } else {
    reveal(handoverCard({ ...created, limits, endpoints: session.endpoints }))
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
  if (flags.stateIs !== undefined && !isSubscriptionState(flags.stateIs)) {
    throw new ServiceError(
      'invalid-value',
      `"${flags.stateIs}" is not a state: use one of ${SUBSCRIPTION_STATES.join(', ')}`,
    )
  }
  await using session = await openSession(this, flags, 'read')
  const customer = flags.customer === undefined ? undefined : await lookUp(session.store, 'customers', flags.customer)
  const all =
    customer === undefined
      ? await session.store.list('subscriptions')
      : await session.store.find('subscriptions', { customerId: customer.id })
  const customers = new Map((await session.store.list('customers')).map((row) => [row.id, row]))
  const state = (row: Subscription) => stateOf(row, customers.get(row.customerId), session.nowMs)
  printList(this, flags, {
    rows: all
      .filter((row) => flags.stateIs === undefined || state(row) === flags.stateIs)
      .filter(
        (row) =>
          spanMs === undefined || endsWithin(row, customers.get(row.customerId), { nowMs: session.nowMs, spanMs }),
      )
      .toSorted(
        (a, b) =>
          (spanMs === undefined ? 0 : (a.validUntil ?? 0) - (b.validUntil ?? 0)) || a.name.localeCompare(b.name),
      ),
    empty:
      flags.ending === undefined
        ? 'no subscriptions; create one with: sluice sub create NAME --customer CUSTOMER'
        : `no subscription ends within ${flags.ending}`,
    columns: [
      { title: 'NAME', value: (row) => row.name },
      { title: 'CUSTOMER', value: (row) => customers.get(row.customerId)?.name ?? row.customerId },
      { title: 'PLAN', value: (row) => row.plan },
      { title: 'PRODUCTS', value: (row) => row.products },
      { title: 'STATE', value: state },
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

function parseEnding(text: string): number {
  const spanMs = parseDuration(text)
  if (spanMs !== undefined && spanMs > 0) return spanMs
  throw new ServiceError('invalid-value', `"${text}" is not a time span for --ending`, {
    fix: 'Write a number and a unit, for example: --ending 7d',
  })
}

export async function showSub(this: CliContext, flags: CommonFlags, idOrName: string): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const { store } = session
  const subscription = await lookUp(store, 'subscriptions', idOrName)
  const { id } = subscription
  const customer = await store.get('customers', subscription.customerId)
  const tokens = (await store.find('tokens', { subscriptionId: id })).filter((token) => token.state !== 'revoked')
  const destination = await store.get('destinations', id)
  const credentials = (await store.find('indexerCredentials', { subscriptionId: id })).filter(
    (row) => row.state === 'active',
  )
  const nodes = await store.find('nodes', { subscriptionId: id })
  const notes = await store.find('notes', { subjectId: id })
  const refunds = await store.find('refunds', { subscriptionId: id })
  const limits = session.limitsOf(subscription)
  if (flags.json === true) {
    return printJson(this, {
      ...subscription,
      state: stateOf(subscription, customer, session.nowMs),
      customer: customer?.name,
      limits: wireLimits(limits),
      overrides: wireLimits(subscription.overrides),
      tokens: tokens.map(({ id, last4, state, createdAt, notAfter }) => ({ id, last4, state, createdAt, notAfter })),
      destination: destination ?? null,
      indexerUsers: credentials.map(({ username }) => username),
      nodes: nodes.map(({ name }) => name),
      notes,
      refunds,
    })
  }
  printFacts(this, [
    ['subscription', subscription.name],
    ['id', id],
    ['customer', customer?.name],
    ['plan', subscription.plan],
    ['products', subscription.products.join(', ')],
    ['state', stateOf(subscription, customer, session.nowMs)],
    ['valid until', printUntil(subscription.validUntil)],
    ...tokens.map((token) => ['token', `${displayToken(token.last4)}  ${token.state}`] as const),
    [
      'destination',
      destination &&
        `${printAddressPort(destination.ip, destination.port)}  ${destination.proof}${destination.paused ? '  paused' : ''}`,
    ],
    ...credentials.map((row) => ['database user', row.username] as const),
    ...nodes.map((node) => ['dedicated node', node.name] as const),
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
  await using session = await openSession(this, flags)
  const validUntil = parseUntil(flags.until, session.nowMs)
  const subscription = await renewSubscription(session.provisioning(flags), { subscription: idOrName, validUntil })
  reportSub(this, flags, subscription, `is valid until ${printUntil(subscription.validUntil)}`)
}

export async function suspendSub(this: CliContext, flags: CutFlags, idOrName: string): Promise<void> {
  await using session = await openSession(this, flags)
  const found = await lookUp(session.store, 'subscriptions', idOrName)
  await confirmCut(this, flags, `this refuses every call of ${found.name} and closes its open streams within 5 s`)
  reportSub(
    this,
    flags,
    await suspendSubscription(session.provisioning(flags), { subscription: found.id }),
    'is suspended',
  )
}

export async function resumeSub(this: CliContext, flags: ChangeFlags, idOrName: string): Promise<void> {
  await using session = await openSession(this, flags)
  reportSub(
    this,
    flags,
    await resumeSubscription(session.provisioning(flags), { subscription: idOrName }),
    'is active again',
  )
}

export async function cancelSub(this: CliContext, flags: CutFlags, idOrName: string): Promise<void> {
  await using session = await openSession(this, flags)
  const found = await lookUp(session.store, 'subscriptions', idOrName)
  await confirmCut(
    this,
    flags,
    `this cancels ${found.name} permanently: token and database user are revoked, open streams close within 5 s`,
  )
  reportSub(
    this,
    flags,
    await cancelSubscription(session.provisioning(flags), { subscription: found.id }),
    'is cancelled',
  )
}

export async function refundSub(
  this: CliContext,
  flags: ChangeFlags & { reason: string },
  idOrName: string,
  amount: string,
  currency: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const input = { subscription: idOrName, amount, currency, reason: flags.reason }
  const { refund, subscription } = await recordRefund(session.provisioning(flags), input)
  const sentence = `refund of ${amount} ${currency} to ${subscription.name} recorded (${refund.id}); no money was moved`
  reportChange(this, flags, refund, sentence)
}
