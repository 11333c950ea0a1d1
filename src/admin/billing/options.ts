import { z } from 'zod'
import { parseDay } from '../../contract/dates.ts'
import { integer, section } from '../../contract/option-fields.ts'
import { isSecretRef, SECRET_REF_RULE } from '../../platform/config/secret-ref.ts'
import { DECIMAL, DECIMAL_DIGITS } from './decimal.ts'

export const BILLING_SINKS = ['openmeter', 'lago', 'stripe'] as const
export type BillingSinkName = (typeof BILLING_SINKS)[number]

const name = z.string().regex(/^[A-Za-z0-9._-]{1,100}$/, 'give 1 to 100 letters, digits, dots, dashes and underscores')

const hasNoSecret = (text: string) => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url === undefined || (url.username === '' && url.password === '' && url.search === '' && url.hash === '')
}

const A_DAY = 'give a day such as 2026-11-01'

const CUSTOMERS_ONLY = 'Stripe counts usage of customers only: remove it, or write customer'

const decimal = z.string().regex(DECIMAL, 'give a decimal in quotes, such as "49" or "0.25"')

const price = z.strictObject({
  currency: z
    .string()
    .regex(/^[A-Z]{3,5}$/, 'give 3 to 5 capital letters such as EUR, USD or SOL')
    .describe('Currency of the amounts.'),
  decimals: integer(0, DECIMAL_DIGITS)
    .default(2)
    .describe('Digits after the point to which amounts are rounded: 2 for EUR and USD, 0 for JPY, 9 for SOL.'),
  perMonth: decimal
    .default('0')
    .describe('Price of a calendar month, shared by the days on which a subscription is valid.'),
  perMillionUnits: decimal.default('0').describe('Price of a million units.'),
  perGigabyte: decimal.default('0').describe('Price of a gigabyte (10^9 bytes) sent to the customer.'),
})

export type PlanPrice = z.output<typeof price>
/** By the name of the plan. */
export type PlanPrices = Readonly<Record<string, PlanPrice>>

const fields = z.strictObject({
  sink: z
    .enum(BILLING_SINKS)
    .optional()
    .describe('Billing system that gets the usage of each closed hour. Without it nothing is sent.'),
  url: z
    .string()
    .regex(/^https?:\/\/[^\s]+$/, 'give https://HOST')
    .refine(hasNoSecret, 'give the address without user, password and query; the key is named by billing.key')
    .optional()
    .describe(
      'Address of the billing system (default: https://openmeter.cloud, https://api.getlago.com, https://api.stripe.com). The path of its API is added.',
    ),
  key: z
    .string()
    .refine(isSecretRef, SECRET_REF_RULE)
    .optional()
    .describe('Reference to the API key, which is sent as Authorization: Bearer.'),
  quantities: z
    .array(z.enum(['units', 'calls', 'bytes']))
    .min(1)
    .max(3)
    .default(['units'])
    .describe('What is sent: units, calls, bytes. Each is an event of its own.'),
  names: section('Names in the billing system: event type (OpenMeter), code (Lago) or event_name (Stripe).', {
    units: name.default('sluice_units').describe('Name of the events with units.'),
    calls: name.default('sluice_calls').describe('Name of the events with calls.'),
    bytes: name.default('sluice_bytes').describe('Name of the events with bytes.'),
  }),
  subject: z
    .enum(['customer', 'subscription'])
    .optional()
    .describe(
      'Whom an event names: the customer, by its billing id if it has one (default), or the subscription (default for Lago).',
    ),
  from: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2}$/, A_DAY)
    .refine((text) => parseDay(text) !== undefined, A_DAY)
    .optional()
    .describe('First day (UTC) whose usage is sent (default: the hour of the first start with this sink).'),
  prices: z
    .record(z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a plan name has a-z, 0-9 and dashes'), price)
    .default({})
    .describe('Prices of plans, for sluice invoice preview. Decimals are given in quotes. Sluice takes no money.'),
  settleMs: integer(60_000, 86_400_000)
    .default(300_000)
    .describe('Time after the end of an hour until its usage is sent. What arrives later is sent as a further part.'),
})

export const billingOptions = fields.superRefine(({ sink, subject }, context) => {
  // Stripe accepts the request and drops the event later, and the missing usage would not be noticed.
  if (sink === 'stripe' && subject === 'subscription')
    context.addIssue({ code: 'custom', path: ['subject'], message: CUSTOMERS_ONLY })
})

export type BillingOptions = z.output<typeof billingOptions>
