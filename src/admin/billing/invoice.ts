import type { Subscription } from '../../access/store/model.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { subscriptionsById } from '../../access/usage/export.ts'
import { ServiceError } from '../../core/error.ts'
import { DAY_MS } from '../../core/human-units.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import { type Cancellations, readCancellations } from './cancellations.ts'
import { parseDecimal, printDecimal, scaleDecimal } from './decimal.ts'
import type { PlanPrice, PlanPrices } from './options.ts'

/** Lines of one preview; a larger one is made by customer. */
const INVOICE_LINES_MAX = 10_000
/** Decimal, as traffic is sold. */
const GIGABYTE = 1_000_000_000n

export type InvoiceRequest = {
  readonly fromMs: number
  readonly toMs: number
  /** The id of a customer; all without it. */
  readonly customerId?: string | undefined
  readonly linesMax?: number
}

export type InvoiceLine = {
  readonly customer: string
  readonly customerId: string
  readonly subscription: string
  readonly subscriptionId: string
  readonly plan: string
  readonly currency: string
  /** Days (UTC) of the month on which the subscription was valid. */
  readonly days: number
  readonly daysOfMonth: number
  readonly units: number
  /** Payload bytes sent to the customer. */
  readonly bytes: number
  /** Decimal strings, rounded to the digits of the currency. */
  readonly base: string
  readonly usage: string
  /** For the bytes. */
  readonly transfer: string
  readonly amount: string
}

export type Invoice = {
  readonly lines: readonly InvoiceLine[]
  /** One per currency: the sums of the rounded lines. */
  readonly totals: readonly { readonly currency: string; readonly amount: string }[]
  /** Subscriptions that were valid or used in the month and whose plan has no price. */
  readonly withoutPrice: number
}

/**
 * What the prices of the plans give for a month. The price per month is shared by days: days of the month on which the subscription was valid, the first and
 * the last included, of all its days. A suspended subscription is valid; one that changed its plan has the price of its present plan. Each part of a line is
 * rounded by itself, so that what is printed adds up.
 */
export async function previewInvoice(store: AccessStore, prices: PlanPrices, given: InvoiceRequest): Promise<Invoice> {
  const { fromMs, toMs, customerId, linesMax = INVOICE_LINES_MAX } = given
  const daysOfMonth = Math.round((toMs - fromMs) / DAY_MS)
  const lines: InvoiceLine[] = []
  const totals = new Map<string, { amount: bigint; digits: number }>()
  let withoutPrice = 0
  let cancellations: Cancellations | undefined
  const slices = createTimeSlices()
  for await (const subscription of subscriptionsById(store, customerId)) {
    const { id } = subscription
    if (slices.isSpent()) await slices.yield()
    let days = validDays(subscription, given)
    if (days > 0 && subscription.state === 'cancelled') {
      cancellations ??= await readCancellations(store, fromMs)
      days = validDays(subscription, given, cancellations.atMsOf(subscription))
    }
    const used = await store.usage({ subscriptionId: id, fromMs, toMs })
    const units = used.reduce((sum, row) => sum + row.units, 0)
    const bytes = used.reduce((sum, row) => sum + row.bytes, 0)
    if (days === 0 && units === 0 && bytes === 0) continue
    const price = Object.hasOwn(prices, subscription.plan) ? prices[subscription.plan] : undefined
    if (price === undefined) {
      withoutPrice += 1
      continue
    }
    if (lines.length >= linesMax)
      throw new ServiceError('invalid-value', `the preview has more than ${linesMax} lines (limit: invoiceLines)`, {
        fix: 'Name a customer.',
      })
    const { currency, decimals } = price
    const { base, usage, transfer } = amountsOf(price, { days, daysOfMonth, units, bytes })
    const sum = base + usage + transfer
    const total = totals.get(currency) ?? { amount: 0n, digits: 0 }
    totals.set(currency, { amount: total.amount + sum, digits: Math.max(total.digits, decimals) })
    lines.push({
      customer: (await store.get('customers', subscription.customerId))?.name ?? subscription.customerId,
      customerId: subscription.customerId,
      subscription: subscription.name,
      subscriptionId: id,
      plan: subscription.plan,
      currency,
      days,
      daysOfMonth,
      units,
      bytes,
      base: printDecimal(base, decimals),
      usage: printDecimal(usage, decimals),
      transfer: printDecimal(transfer, decimals),
      amount: printDecimal(sum, decimals),
    })
  }
  return {
    lines,
    totals: [...totals].map(([currency, { amount, digits }]) => ({ currency, amount: printDecimal(amount, digits) })),
    withoutPrice,
  }
}

function amountsOf(
  { perMonth, perMillionUnits, perGigabyte, decimals }: PlanPrice,
  { days, daysOfMonth, units, bytes }: Pick<InvoiceLine, 'days' | 'daysOfMonth' | 'units' | 'bytes'>,
): { base: bigint; usage: bigint; transfer: bigint } {
  return {
    base: scaleDecimal(parseDecimal(perMonth), { times: BigInt(days), by: BigInt(daysOfMonth) }, decimals),
    usage: scaleDecimal(parseDecimal(perMillionUnits), { times: BigInt(units), by: 1_000_000n }, decimals),
    transfer: scaleDecimal(parseDecimal(perGigabyte), { times: BigInt(bytes), by: GIGABYTE }, decimals),
  }
}

/** Days (UTC) of the month on which a subscription was valid, up to `endMs` at most. */
function validDays(
  { createdAt, validUntil }: Subscription,
  { fromMs, toMs }: InvoiceRequest,
  endMs: number = toMs,
): number {
  const first = Math.floor(Math.max(fromMs, createdAt) / DAY_MS)
  const end = Math.ceil(Math.min(toMs, validUntil ?? toMs, endMs) / DAY_MS)
  return Math.max(0, end - first)
}
