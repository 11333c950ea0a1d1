import { z } from 'zod'
import { ADMIN_ROLES, type AdminRouteId } from '../admin-routes.ts'
import { GRPC_KINDS } from '../limits.ts'
import { PRODUCT_KEYS } from '../products.ts'
import { METHOD_NAME } from '../typed-limits.ts'

/**
 * Schemas of the request bodies of the admin API. An unknown member is an error. Strings are bounded here; what a name, an address or a date may
 * contain is checked by the functions of `access/provisioning`, as for the command line.
 */

const name = z.string().min(1).max(63)
/** The name or the id of a record. */
const idOrName = z.string().min(1).max(80)
const freeText = z.string().min(1).max(2000)
const address = z.string().min(1).max(2048)
const until = z
  .string()
  .min(1)
  .max(40)
  .describe('The last day, as 2027-01-31, a time span from today such as 90d, or never.')

const orUnlimited = <Value extends z.ZodType>(number: Value) =>
  z.union([number, z.null(), z.literal('plan')]).describe('Null is unlimited; "plan" is the limit of the plan.')
const numberLimit = orUnlimited(z.int().min(1))
const numberOrZero = orUnlimited(z.int().min(0))
const requiredLimit = z.union([z.int().min(1), z.literal('plan')]).describe('"plan" is the limit of the plan.')

const methodLimit = z
  .strictObject({
    method: z.string().regex(METHOD_NAME),
    cost: z.int().min(0).optional().describe('Units that one call costs; without it those of every plan.'),
    per_second: z.number().min(0).optional().describe('Calls per second, with a burst of ten seconds.'),
  })
  .describe('Cost and rate of one method, instead of those of the plan. An entry with neither removes them.')

const limits = z
  .strictObject({
    units_per_second: orUnlimited(z.number().gt(0)),
    sends_per_second: orUnlimited(z.number().min(0)),
    units_per_month: numberOrZero,
    ws_connections: numberLimit,
    ws_subscriptions: numberOrZero,
    grpc_streams: numberLimit,
    grpc_accounts_per_stream: numberLimit,
    grpc_kinds: z.union([z.array(z.enum(GRPC_KINDS)).max(GRPC_KINDS.length), z.null(), z.literal('plan')]),
    grpc_blocked_owners: z.union([z.array(z.string().max(44)).max(256), z.literal('plan')]),
    grpc_resume: z.union([z.boolean(), z.literal('plan')]),
    request_bytes: requiredLimit,
    batch_items: requiredLimit,
    methods: z
      .union([z.array(methodLimit).max(256), z.literal('plan')])
      .describe('Methods that are not named stay as they are; "plan" removes all own limits of methods.'),
  })
  .partial()
  .describe('Limits that differ from those of the plan. What is not named stays as it is.')

const destination = z.strictObject({
  address: z.string().min(1).max(60).describe('IP:PORT of a UDP destination.'),
  vouched: z.boolean().optional().describe('True skips the proof of the destination; the audit log records it.'),
})

const subCreate = z.strictObject({
  name,
  customer: idOrName,
  plan: name.optional().describe('Default starter.'),
  products: z
    .array(z.enum(PRODUCT_KEYS as [string, ...string[]]))
    .min(1)
    .max(PRODUCT_KEYS.length)
    .optional()
    .describe('Default bundle.'),
  valid_until: until.optional().describe('As `until` of a renewal; without it there is no end.'),
  limits: limits.optional(),
  destination: destination.optional().describe('For shreds-raw.'),
})

const nodeAddresses = {
  ws: address.optional(),
  grpc: address.optional(),
  credential: address.optional().describe('Reference to the credential of the node: file:PATH or env:NAME.'),
}

const sink = z
  .string()
  .min(1)
  .max(40)
  .optional()
  .describe('Billing system; without it billing.sink of the configuration.')
const sinkOnly = z.strictObject({ sink }).optional()

/** Body of each route that takes one. */
export const ADMIN_BODIES = {
  customerAdd: z.strictObject({ name, contact: z.string().max(200).optional() }),
  customerChange: z
    .strictObject({ name: name.optional(), contact: z.string().max(200).optional() })
    .refine((body) => (body.name === undefined) !== (body.contact === undefined), 'give either name or contact')
    .describe('One of the two: each is a change of its own in the audit log.'),
  customerBillingId: z.strictObject({
    billing_id: z
      .string()
      .max(200)
      .nullable()
      .describe('1 to 200 printable characters without spaces; null removes it.'),
  }),
  noteAdd: z.strictObject({ subject: idOrName.describe('Customer or subscription.'), text: freeText }),
  subCreate,
  subLimit: z.strictObject({
    plan: name.optional(),
    limits: limits.optional(),
    clear: z
      .array(z.string().min(1).max(40))
      .max(20)
      .optional()
      .describe('Limits whose override is removed, such as units_per_second; ["all"] removes all.'),
  }),
  subRenew: z.strictObject({ until }),
  refundAdd: z.strictObject({
    amount: z.string().min(1).max(30).describe('Decimal text such as 12.50.'),
    currency: z.string().min(3).max(5),
    reason: freeText,
  }),
  tokenRotate: z
    .strictObject({
      grace: z.string().max(20).optional().describe('The old token stays valid for this time, such as 1h.'),
    })
    .optional(),
  destinationSet: destination,
  destinationVerify: z
    .strictObject({ code: z.string().min(1).max(64).optional().describe('The code that the destination received.') })
    .optional(),
  nodeAdd: z.strictObject({ name, rpc: address, ...nodeAddresses }),
  nodeChange: z.strictObject({ rpc: address.optional(), ...nodeAddresses }).describe('"none" removes an address.'),
  nodeAssign: z.strictObject({
    subscription: idOrName.nullable().describe('Null removes the assignment.'),
  }),
  billingRetry: z
    .strictObject({
      sink,
      ids: z.array(z.string().min(1).max(200)).min(1).max(100).optional().describe('Ids of events; without it all.'),
      include_unknown: z
        .boolean()
        .optional()
        .describe('Also those whose outcome is unknown: they may be counted twice.'),
      mark_sent: z.boolean().optional().describe('They were counted: do not send them again.'),
    })
    .optional(),
  billingPause: sinkOnly,
  billingResume: sinkOnly,
  adminAdd: z.strictObject({
    name,
    role: z.enum(ADMIN_ROLES),
    expires: z.string().min(1).max(40).optional().describe('A time span such as 90d; without it there is no end.'),
  }),
} satisfies { readonly [Id in AdminRouteId]?: z.ZodType }

export type AdminBodies = { readonly [Id in keyof typeof ADMIN_BODIES]: z.output<(typeof ADMIN_BODIES)[Id]> }

/** Body of `POST /v1/session`. */
export const sessionBody = z.strictObject({ token: z.string().min(1).max(200) })
