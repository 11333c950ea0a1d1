import { z } from 'zod'
import { ADMIN_ROLES, type AdminRouteId } from '../admin-routes.ts'
import { PRODUCT_KEYS } from '../products.ts'
import { formerNameOf } from './former-field.ts'

/**
 * Schemas of the responses of the admin API: the fields that clients may rely on. A response may have more. Reports of the running process, such as its
 * status, are as the command line prints them with `--json`, and are not described further.
 */

const time = z.iso.datetime()
const page = <Item extends z.ZodType>(item: Item) =>
  z.looseObject({
    items: z.array(item),
    next_cursor: z
      .string()
      .nullable()
      .describe('Null at the end of the list. A page may have no items although more follow.'),
  })

const limits = z
  .record(z.string(), z.unknown())
  .describe('Names as in the limits of a subscription; null is unlimited.')
const note = z.looseObject({ id: z.string(), subject_id: z.string(), text: z.string(), created_at: time })
const refund = z.looseObject({
  id: z.string(),
  subscription_id: z.string(),
  amount: z.string(),
  currency: z.string(),
  reason: z.string(),
  created_at: time,
})

const customer = z.looseObject({
  id: z.string(),
  name: z.string(),
  contact: z.string(),
  state: z.enum(['active', 'suspended', 'removed']),
  created_at: time,
})

const subscriptionFields = {
  id: z.string(),
  name: z.string(),
  customer_id: z.string(),
  plan: z.string(),
  products: z.array(z.enum(PRODUCT_KEYS as [string, ...string[]])),
  valid_until: time.nullable(),
  created_at: time,
}
const state = z
  .enum(['active', 'suspended', 'cancelled', 'expired', 'customer-suspended'])
  .describe('The effective state: also expired after the last day, and customer-suspended.')
const storedState = z.enum(['active', 'suspended', 'cancelled'])
const listedSubscription = z.looseObject({ ...subscriptionFields, customer: z.string(), state })
const subscription = z.looseObject({
  ...subscriptionFields,
  customer: z.string().nullable(),
  state,
  stored_state: storedState.optional().describe('The state of the record, where it differs from `state`.'),
  limits,
  overrides: limits,
})

const tokenState = z.enum(['active', 'retiring', 'revoked'])
const destination = z.looseObject({
  ip: z.string(),
  port: z.int(),
  proof: z.enum(['unproven', 'vouched', 'proven']),
  paused: z.boolean(),
  set_at: time,
})
const ownToken = z.looseObject({
  id: z.string(),
  last4: z.string(),
  state: tokenState,
  created_at: time,
  not_after: time.nullable(),
})
const issuedToken = z.looseObject({
  subscription: z.string(),
  subscription_id: z.string(),
  token_id: z.string().optional(),
  last4: z.string().optional(),
  token: z.string().optional().describe('Shown once; absent in a dry run.'),
})
const databaseUser = z.looseObject({
  subscription: z.string(),
  subscription_id: z.string(),
  username: z.string().optional(),
  password: z.string().optional().describe('Shown once; absent in a dry run.'),
})

const node = z.looseObject({
  id: z.string(),
  name: z.string(),
  rpc: z.string(),
  ws: z.string(),
  grpc: z.string(),
  credential: z.string().nullable(),
  subscription_id: z.string().nullable(),
  created_at: time,
})
const released = z
  .looseObject({ subscription: z.string(), nodes_left: z.int(), is_bundle: z.boolean() })
  .nullable()
  .describe(
    'The subscription that lost the node. Without nodes left it uses the shared ones if its products include bundle.',
  )
const upstream = z.looseObject({ name: z.string(), state: z.string(), slot: z.number(), lag_slots: z.number() })
const drained = z.looseObject({ upstream: z.string(), done: z.boolean() })

const counts = {
  calls: z.number(),
  units: z.number(),
  refused: z.number(),
  bytes: z.number().optional().describe('Payload bytes sent to the customer. Absent by method.'),
}
const usageLine = z.looseObject({
  from: time.nullable().optional().describe('Start of the hour or day.'),
  subscription: z.string().nullable().optional().describe('Null for the sum of the subscriptions without own lines.'),
  customer: z.string().nullable().optional(),
  interface: z.string(),
  method: z.string().optional(),
  ...counts,
})

const auditLine = z.looseObject({
  seq: z.int(),
  time: z.string(),
  action: z.string(),
  subjects: z.array(z.string()),
  subject_names: z.record(z.string(), z.string()),
  actor: z.looseObject({
    user: z.string(),
    admin: z
      .looseObject({ id: z.string(), name: z.string(), role: z.enum(ADMIN_ROLES), address: z.string() })
      .optional()
      .describe('Absent for a change by the command line.'),
  }),
})

const overview = z.looseObject({
  customers: z.int(),
  subscriptions: z.record(z.string(), z.int()).describe('Counts by state.'),
  ending_14d: z.looseObject({
    count: z.int(),
    next: z.array(z.looseObject({ name: z.string(), customer: z.string(), valid_until: time.nullable() })),
  }),
  near_month_limit: z.looseObject({
    count: z.int(),
    next: z.array(
      z.looseObject({
        name: z.string(),
        customer: z.string(),
        units: z.number(),
        limit: z.number(),
        share: z.number(),
      }),
    ),
  }),
  refusals_last_minute: z.looseObject({
    seconds: z.number().describe('The time that the counts cover, up to a minute.'),
    items: z.array(z.looseObject({ part: z.string(), reason: z.string(), count: z.number() })),
  }),
  nodes: z.array(upstream),
  chain: z.looseObject({
    slot: z.number().nullable(),
    slot_ms: z.number().nullable().describe('Measured length of a slot.'),
    execution_transactions_per_second: z.number().nullable(),
  }),
  sender: z.looseObject({ landed_share: z.number().nullable() }).nullable(),
  subscriptions_by_plan: z
    .record(z.string(), z.int())
    .describe('Subscriptions that are not cancelled, by the name of their plan.'),
  live: z
    .looseObject({
      at_ms: z.number().describe('Monotonic time of the process: rates are differences of two responses.'),
      pid: z.int().nullable(),
      calls: z.number(),
      units: z.number(),
      refused: z.number(),
      connections: z.number().describe('Open WebSocket connections and gRPC streams.'),
      transactions: z.number().nullable().describe('Written by the indexer; null where it does not run.'),
      landed: z.number().nullable().describe('By the sender; null where it does not run.'),
    })
    .describe('Counts since the start of the process.'),
})
const overviewSeries = z.looseObject({
  from: time,
  until: time,
  is_complete: z.boolean().describe('False while hours are added up: their counts are null. Ask again in a second.'),
  items: z.array(
    z.looseObject({
      from: time,
      calls: z.number().nullable(),
      units: z.number().nullable(),
      refused: z.number().nullable(),
    }),
  ),
})

const admin = z.looseObject({
  id: z.string(),
  name: z.string(),
  role: z.enum(ADMIN_ROLES),
  last4: z.string(),
  state: z.enum(['active', 'revoked']),
  created_at: time,
  created_by: z.string(),
  expires_at: time.nullable(),
})
const issuedAdmin = admin.extend({ token: z.string().optional().describe('Shown once; absent in a dry run.') })
const me = z.looseObject({
  id: z.string(),
  name: z.string(),
  role: z.enum(ADMIN_ROLES),
  permissions: z.array(z.string()),
})
const plan = z.looseObject({
  name: z.string(),
  limits,
  price: z
    .looseObject({
      currency: z.string(),
      per_month: z.string(),
      per_million_units: z.string(),
      per_gigabyte: z
        .string()
        .optional()
        .describe('Of 10^9 bytes sent to the customer; servers before 0.1.0 do not send it.'),
    })
    .nullable()
    .describe('From billing.prices; null where the plan has no price.'),
})
const shownDestination = destination.extend({ subscription: z.string() })

const billingPaused = z.looseObject({ sink: z.string().nullable(), paused: z.boolean() })

/** Schema of the response of each route that has one. */
export const ADMIN_REPLIES = {
  me,
  overview,
  overviewSeries,
  products: page(
    z.looseObject({
      key: z.string(),
      title: z.string(),
      is_offered: z.boolean(),
      status: z.enum(['offered', 'preview', 'coming-soon']),
    }),
  ),
  planList: page(plan),
  planShow: plan.extend({ costs: z.array(z.looseObject({ method: z.string(), cost: z.number() })) }),
  customerList: page(customer.extend({ subscriptions: z.int() })),
  customerAdd: customer,
  customerShow: customer.extend({
    subscriptions: z.array(
      z.looseObject({
        ...subscriptionFields,
        state: storedState,
        effective_state: state.optional().describe('Where it differs from `state`.'),
      }),
    ),
    has_more_subscriptions: z.boolean(),
    notes: z.array(note),
  }),
  customerChange: customer,
  customerSuspend: customer,
  customerResume: customer,
  customerRemove: customer.extend({ cancelled: z.array(z.looseObject({ id: z.string(), name: z.string() })) }),
  customerBillingId: z.looseObject({
    customer: z.string(),
    customer_id: z.string(),
    billing_id: z.string().nullable(),
  }),
  noteAdd: note,
  subList: page(listedSubscription),
  subCreate: subscription.extend({
    token: z.string().optional().describe('Shown once; absent in a dry run.'),
    card: z.string().optional().describe('Handover card for the customer; shown once.'),
    indexer: z.looseObject({ username: z.string(), password: z.string() }).optional().describe('Shown once.'),
    destination: destination.nullable(),
  }),
  subShow: subscription.extend({
    tokens: z.array(ownToken),
    destination: destination.nullable(),
    indexer_users: z.array(z.string()),
    nodes: z.array(z.string()),
    notes: z.array(note),
    refunds: z.array(refund),
  }),
  subLimit: subscription,
  subRenew: subscription,
  subSuspend: subscription,
  subResume: subscription,
  subCancel: subscription,
  productAdd: subscription,
  productRemove: subscription,
  refundAdd: refund,
  tokenList: page(
    ownToken.extend({
      subscription_id: z.string(),
      subscription: z.string().nullable(),
      last_used_at: time.nullable(),
    }),
  ),
  tokenIssue: issuedToken,
  tokenRotate: issuedToken.extend({
    ended: z.array(z.looseObject({ id: z.string(), last4: z.string(), state: tokenState, not_after: time.nullable() })),
  }),
  tokenRevoke: z.looseObject({
    subscription: z.string(),
    subscription_id: z.string(),
    revoked: z.array(z.looseObject({ id: z.string(), last4: z.string() })),
  }),
  destinationList: page(shownDestination.extend({ is_pending: z.boolean() })),
  destinationSet: shownDestination,
  destinationPause: shownDestination,
  destinationResume: shownDestination,
  destinationVerify: shownDestination.extend({
    is_fresh: z.boolean().optional().describe('The challenge of a moment ago is still open; no new one was sent.'),
  }),
  shredReport: page(
    z.looseObject({
      from: time.nullable().optional(),
      subscription: z.string(),
      subscription_id: z.string(),
      packets: z.number(),
      bytes: z.number(),
      slots: z.number(),
    }),
  ),
  indexerGrant: databaseUser,
  indexerRotate: databaseUser,
  nodeList: page(node.extend({ subscription: z.string().nullable() })),
  nodeAdd: node,
  nodeChange: node,
  nodeRemove: node.extend({ released }),
  nodeAssign: node.extend({ subscription: z.string().nullable(), released }),
  upstreamList: page(upstream),
  upstreamDrain: drained,
  upstreamUndrain: drained,
  connectionList: page(z.looseObject({ id: z.string(), subscription_id: z.string() })),
  connectionClose: z.looseObject({ connection: z.string(), closed: z.boolean() }),
  usage: page(usageLine).extend({
    from: time,
    until: time,
    by: z.string(),
    total: z.looseObject(counts),
    rest: z.looseObject({ subscriptions: z.int(), ...counts }).nullable(),
  }),
  audit: page(auditLine),
  auditVerify: z.looseObject({ ok: z.boolean(), lines: z.int(), findings: z.array(z.unknown()) }),
  billingStatus: z.looseObject({ sink: z.string().nullable() }),
  billingRetry: z.looseObject({
    sink: z.string().nullable(),
    changed: z.int().describe('Events that wait to be sent again, or count as sent.'),
    unknown: z.int().describe('Events that stay, since their outcome is unknown.'),
  }),
  billingPause: billingPaused,
  billingResume: billingPaused,
  adminList: page(admin),
  adminAdd: issuedAdmin,
  adminRotate: issuedAdmin,
  adminRemove: admin,
} satisfies { readonly [Id in AdminRouteId]?: z.ZodType }

/** Routes that make a record and respond with 201. */
export const ADMIN_CREATES: ReadonlySet<string> = new Set<AdminRouteId>([
  'customerAdd',
  'noteAdd',
  'subCreate',
  'refundAdd',
  'tokenIssue',
  'indexerGrant',
  'nodeAdd',
  'adminAdd',
  'noticeTest',
])

/** Response of `POST` and `GET /v1/session`. */
export const sessionReply = me.extend({ csrf_token: z.string().describe('Sent as x-csrf-token with each change.') })

const signInMethod = z.looseObject({
  kind: z.enum(['token', 'oidc']),
  label: z.string().optional().describe('Name of the issuer.'),
  path: z.string().optional().describe('Where the browser goes to sign in.'),
})

/** Response of `GET /v1/sign-in`. */
export const signInReply = z.looseObject({
  methods: z.array(signInMethod),
  ways: z.array(signInMethod).meta(formerNameOf('methods')),
})
