import { z } from 'zod'
import { GRPC_KINDS } from '../limits.ts'
import { PRODUCT_KEYS } from '../products.ts'
import { formerNameOf } from './former-field.ts'

/** Schemas of the REST responses of the RPC endpoint, the sender and the operator listener. */

const count = z.int().min(0)
const time = z.iso.datetime()
const limit = z.number().nullable().describe('Null is unlimited.')

const limits = z.strictObject({
  unitsPerSecond: limit,
  sendsPerSecond: limit,
  unitsPerMonth: limit,
  wsConnections: limit,
  wsSubscriptions: limit,
  grpcStreams: limit,
  grpcAccountsPerStream: limit,
  grpcKinds: z.array(z.enum(GRPC_KINDS)).nullable(),
  grpcBlockedOwners: z.array(z.string()),
  grpcResume: z.boolean(),
  requestBytes: count,
  batchItems: count,
  methods: z.array(
    z.strictObject({ method: z.string(), cost: z.exactOptional(z.number()), perSecond: z.exactOptional(z.number()) }),
  ),
})

const connection = z.strictObject({
  id: z.string(),
  interface: z.enum(['ws', 'grpc']),
  since: time,
  age_seconds: count,
  remote_address: z.string(),
  subscriptions: count.describe('Subscriptions of a WebSocket, filters of a gRPC stream.'),
  bytes_out: count,
  moves: z
    .exactOptional(count)
    .describe('Of a gRPC stream: how often it has moved to another node, after which updates were sent again.'),
})

const shredDestination = z.strictObject({
  address: z.string().describe('IP address and port.'),
  verified: z.boolean().describe('False: nothing is sent until the address has sent its challenge back.'),
  paused: z.boolean().describe('True: the operator has paused it.'),
})

export const whoamiRecord = z.strictObject({
  subscription: z.string(),
  plan: z.string(),
  products: z.array(z.enum(PRODUCT_KEYS)),
  dedicated_nodes: z
    .exactOptional(z.array(z.strictObject({ name: z.string() })))
    .describe(
      'With the product dedicated-node: the assigned nodes. Without one, calls are refused as not-assigned, or use the shared nodes of the bundle.',
    ),
  shreds: z
    .exactOptional(z.strictObject({ destination: shredDestination.nullable(), pending: shredDestination.nullable() }))
    .describe('With the product shreds-raw: where shreds are sent, and a new address that is not verified yet.'),
  valid_until: time.nullable(),
  limits,
  budget: z.strictObject({ limit, remaining: z.number().nullable(), resets_at: time }),
  rate_limits: z
    .array(
      z.strictObject({
        name: z.string().describe('The limit that a refusal names.'),
        method: z.exactOptional(z.string()).describe('With methodPerSecond.'),
        limit: z.number().describe('Ten seconds of the rate, at least one call.'),
        remaining: count,
        resets_at: time.nullable().describe('Null where the rate is 0.'),
      }),
    )
    .describe('What is left of each limit per second: of unitsPerSecond in units, of the others in calls.'),
  month: z.strictObject({ limit, used: count, resets_at: time }),
  open: z.record(z.string(), count).describe('Open connections, streams and subscriptions, by limit.'),
  connections: z.array(connection),
})

export const connectionList = z.strictObject({ total: count, connections: z.array(connection) })
export const connectionClosed = z.strictObject({ id: z.string(), closed: z.literal(true) })
export const wsTicket = z.strictObject({ ticket: z.string(), expires_at: time, url: z.exactOptional(z.string()) })

const ownToken = z.strictObject({
  last4: z.string(),
  valid_until: time.nullable().describe('When a token that was replaced ends; null for one that was not.'),
})
export const accountRecord = whoamiRecord.omit({ connections: true }).extend({
  customer: z.string().nullable(),
  connections: count.describe('Open WebSockets and gRPC streams.'),
  token: ownToken.nullable().describe('The token of this request.'),
  tokens: z
    .array(ownToken.extend({ state: z.enum(['active', 'retiring']), created_at: time }))
    .nullable()
    .describe('All valid tokens of the subscription; null while they cannot be read.'),
  endpoints: z.record(z.string(), z.string()).describe('Addresses of the services, as far as they are known.'),
})

const usageCounts = { calls: count, units: count, refused: count }
export const usageReport = z.strictObject({
  from: time,
  to: time,
  by: z.enum(['hour', 'day', 'total', 'method']),
  as_of: time.describe('When it was read. What was used in the second before may be missing.'),
  lines: z.array(
    z.looseObject({
      day: z.exactOptional(z.iso.date()).describe('With by=day, in UTC.'),
      hour: z.exactOptional(time).describe('With by=hour: its start.'),
      interface: z.enum(['rpc', 'ws', 'grpc', 'indexer', 'shreds']),
      method: z.exactOptional(z.string()).describe('With by=method; `other` for those that are not counted apart.'),
      ...usageCounts,
    }),
  ),
  totals: z.looseObject(usageCounts),
})

const deliveryCounts = {
  packets: count,
  bytes: count,
  unsent: count.describe('Not sent: over a rate, paused, or refused by the network.'),
  slots: count,
  first_slot: count.nullable(),
  last_slot: count.nullable(),
  delay_p50_ms: z.number().nullable().describe('From the receipt of a shred until it was sent to all destinations.'),
  delay_p99_ms: z.number().nullable(),
}
export const shredsReport = z.strictObject({
  destination: shredDestination.nullable(),
  pending: shredDestination.nullable().describe('A new address that is not verified yet.'),
  state: z.string().nullable().describe('Of the destination; null where the relay runs elsewhere.'),
  last_fault: z.string().nullable(),
  delivery: z
    .strictObject({
      from: time,
      to: time,
      lines: z.array(z.strictObject({ hour: time, ...deliveryCounts })),
      totals: z.strictObject(deliveryCounts).nullable(),
    })
    .nullable()
    .describe('Of the last 24 hours; null where the relay runs elsewhere.'),
})

const decodedSlot = z.strictObject({
  slot: count,
  parent_slot: count.nullable(),
  is_complete: z.boolean().describe('Every transaction of the slot was delivered.'),
  is_conflicting: z.boolean().describe('The leader signed two versions of a part of it.'),
  transactions: count,
  data_sets: count,
  data_sets_lost: count.describe('At least so many.'),
  data_sets_from_upstream: count.describe(
    'Data sets that the shreds did not give and the stream of a node has delivered: at least so many.',
  ),
  fec_sets_recovered: count,
  fec_sets_not_recoverable: count,
  first_shred_at: time,
  last_shred_at: time,
})
export const decodedReport = z.strictObject({
  slots_complete: count,
  slots_incomplete: count,
  transactions: count,
  data_sets_lost: count,
  slots: z.array(decodedSlot).describe('The newest closed slots, the newest first.'),
})

export const geyserCheck = z.strictObject({
  allowed: z.boolean(),
  rule: z.string().nullable(),
  filter: z.strictObject({ kind: z.string(), name: z.string() }).nullable(),
  message: z.string().nullable(),
  counts: z.strictObject({ accounts: count, filters: z.record(z.string(), count) }).nullable(),
  cost: count,
  limits: limits.pick({
    grpcAccountsPerStream: true,
    grpcKinds: true,
    grpcBlockedOwners: true,
    grpcResume: true,
    grpcStreams: true,
  }),
  open: z.strictObject({ grpcStreams: count }),
})

/** Error responses of REST paths: a stable code, and the request id for the operator. */
export const pageError = z.looseObject({ error: z.string(), request_id: z.exactOptional(z.string()) })

const rpcId = z.union([z.string(), z.number(), z.null()])
export const rpcRequest = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: z.exactOptional(rpcId),
  method: z.string(),
  params: z.exactOptional(z.union([z.array(z.unknown()), z.record(z.string(), z.unknown())])),
})
export const rpcResponse = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: rpcId,
  result: z.exactOptional(z.unknown()),
  error: z.exactOptional(z.looseObject({ code: z.int(), message: z.string(), data: z.exactOptional(z.unknown()) })),
})

export const tipTerms = z.strictObject({ min_tip_lamports: count, tip_accounts: z.array(z.string()) })

const attemptResponse = z.enum(['taken', 'refused', 'failed', 'busy'])
const formerMessage = z.string().meta(formerNameOf('message'))

export const receipt = z.strictObject({
  signature: z.string(),
  state: z.enum(['accepted', 'sent', 'landed', 'expired', 'ended', 'unknown']),
  final: z.boolean(),
  accepted_at: time,
  fee_payer: z.string().nullable(),
  tip: z.strictObject({ account: z.string(), lamports: count, moved: z.boolean().nullable() }).nullable(),
  landed: z
    .strictObject({
      slot: count,
      confirmation: z.enum(['processed', 'confirmed', 'finalized']),
      error: z.unknown(),
      at: time,
    })
    .nullable(),
  expired_at_height: count.nullable(),
  attempts: z.array(
    z.strictObject({
      path: z.string(),
      to: z.string(),
      response: attemptResponse,
      answer: attemptResponse.meta(formerNameOf('response')),
      message: z.exactOptional(z.string()),
      says: z.exactOptional(formerMessage),
      first_at: time,
      last_at: time,
      times: count,
    }),
  ),
  attempts_left_out: z.exactOptional(count),
  message: z.exactOptional(z.string()),
  says: z.exactOptional(formerMessage),
})

export const operatorHealth = z.strictObject({
  state: z.string(),
  ready: z.boolean(),
  uptime_seconds: count,
  reasons: z.array(z.strictObject({ part: z.string(), reason: z.string(), age_seconds: count })),
})
