import { z } from 'zod'
import { integer, refuseSameNames } from '../contract/option-fields.ts'
import { ADDRESS_REF_RULE, isAddressRef } from '../platform/config/address-ref.ts'
import { credentialHeaderOption } from '../platform/config/credential-header.ts'
import { isSecretRef, SECRET_REF_RULE } from '../platform/config/secret-ref.ts'
import { parseRemoteAddress } from '../platform/net/pinned-address.ts'
import { NODES_MAX } from './nodes-max.ts'

const HTTP = ['http:', 'https:']
const WS = ['ws:', 'wss:']

const address = (protocols: readonly string[], example: string) =>
  z
    .string()
    .refine(
      (text) => isAddressRef(text) || parseRemoteAddress(text, protocols) !== undefined,
      `give an address such as ${example}; ${ADDRESS_REF_RULE}`,
    )

const nodeName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a node name has a-z, 0-9 and dashes')
  .refine((name) => name !== 'dedicated' && name !== 'other', 'this name is reserved for metrics')

const node = z
  .strictObject({
    name: nodeName.describe('Shown to the operator, and the label of its metrics.'),
    rpc: address(HTTP, 'http://10.0.0.1:8899').optional().describe('JSON-RPC; the address, or a reference to it.'),
    ws: address(WS, 'ws://10.0.0.1:8900').optional().describe('PubSub; the address, or a reference to it.'),
    grpc: address(HTTP, 'http://10.0.0.1:10000')
      .optional()
      .describe('Yellowstone gRPC; the address, or a reference to it.'),
    credential: z
      .string()
      .refine(isSecretRef, SECRET_REF_RULE)
      .optional()
      .describe("Reference to this node's own credential."),
    credentialHeader: credentialHeaderOption
      .default('x-token')
      .describe('The header that carries the credential; in authorization it follows the scheme Bearer.'),
    allowPrivate: z
      .boolean()
      .optional()
      .describe('Allows a loopback or private address for this node; default: as for all nodes.'),
    decoded: z
      .boolean()
      .optional()
      .describe(
        'The node serves geyser.Geyser/SubscribeDeshred itself: its stream is merged into ShredStream Decoded. Takes effect at a restart.',
      ),
    weight: integer(1, 100).default(1).describe('Its share of the load relative to the other nodes.'),
  })
  .refine(
    ({ rpc, ws, grpc }) => rpc !== undefined || ws !== undefined || grpc !== undefined,
    'a node has at least one of rpc, ws and grpc',
  )
  .refine(({ grpc, decoded }) => decoded !== true || grpc !== undefined, 'a node with decoded = true has grpc')

const health = z.strictObject({
  probeMs: integer(100, 60_000).default(1000).describe('How often the slot of each node is read.'),
  probeTimeoutMs: integer(100, 60_000).default(2000).describe('Timeout of that call.'),
  silentMs: integer(50, 60_000)
    .default(800)
    .describe(
      'A node that responds neither to that call nor to any other for this time is used only if no other node is left; reads in flight move to another node.',
    ),
  lagMsMax: integer(100, 40_000_000)
    .default(10_000)
    .describe(
      'A node further behind the best one, by its slots in the length of a slot of the chain, is taken out of rotation.',
    ),
  shredLagMsMax: integer(100, 40_000_000)
    .default(40_000)
    .describe('A node further behind its own newest shred is taken out of rotation.'),
  lagSlotsMax: integer(1, 100_000)
    .optional()
    .describe(
      'Earlier form of lagMsMax, in slots of 400 ms whatever the length of a slot; where it is set, it counts.',
    ),
  shredLagSlotsMax: integer(1, 100_000)
    .optional()
    .describe('Earlier form of shredLagMsMax, in slots of 400 ms; where it is set, it counts.'),
  stallMs: integer(500, 60_000)
    .default(2000)
    .describe(
      'A WebSocket connection without a new slot for this time, while other nodes have new slots, is replaced.',
    ),
})

const breaker = z
  .strictObject({
    failuresInRow: integer(1, 1000)
      .default(5)
      .describe('Failed calls in a row after which a node is taken out of rotation.'),
    failuresShare: z
      .number()
      .gt(0)
      .max(1)
      .default(0.5)
      .describe('Share of failed calls in the last ten seconds after which a node is taken out of rotation.'),
    failuresShareCalls: integer(1, 100_000)
      .default(20)
      .describe('Calls in ten seconds from which on the share counts.'),
    firstMs: integer(10, 60_000)
      .default(100)
      .describe('First delay before a node out of rotation is probed again; the delay grows.'),
    maxMs: integer(10, 60_000).default(1500).describe('Largest delay between two such probes.'),
  })
  .refine(({ firstMs, maxMs }) => firstMs <= maxMs, {
    path: ['firstMs'],
    error: 'must not be above upstreams.breaker.maxMs: the delay grows from the one to the other',
  })

const calls = z.strictObject({
  deadlineMs: integer(100, 600_000).default(10_000).describe('From forwarding a call to its response.'),
  heavyDeadlineMs: integer(100, 600_000).default(60_000).describe('The same for heavy methods.'),
  retryShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe('Reads retried on a second node, at most, as a share of all calls.'),
})

const connections = z.strictObject({
  rpcPerNodeMax: integer(1, 10_000).default(256).describe('HTTP connections to one node.'),
  rpcWaitingMax: integer(0, 100_000).default(1024).describe('Calls that may wait for an HTTP connection to one node.'),
  wsPerNodeMax: integer(1, 256).default(8).describe('WebSocket connections to one node.'),
  wsSubscriptionsMax: integer(1, 100_000).default(1000).describe('Subscriptions on one WebSocket connection.'),
  grpcPerNodeMax: integer(1, 256).default(8).describe('gRPC connections to one node.'),
})

export const upstreamsOptions = z.strictObject({
  nodes: z
    .array(node)
    .max(NODES_MAX)
    .default([])
    .superRefine((items, context) => refuseSameNames(context, [{ key: 'upstreams.nodes', items }]))
    .describe('The shared nodes, for every subscription without dedicated nodes.'),
  allowPrivate: z
    .boolean()
    .default(false)
    .describe('Allows loopback and private addresses for nodes. Link-local and metadata addresses are never allowed.'),
  dedicatedCredentialHeader: credentialHeaderOption
    .default('x-token')
    .describe('Header for the credential of a dedicated node.'),
  health: health.prefault({}).describe('When a node is in rotation.'),
  breaker: breaker.prefault({}).describe('When a failing node is taken out of rotation.'),
  calls: calls.prefault({}).describe('Deadlines and retries.'),
  connections: connections.prefault({}).describe('Connections to each node.'),
})

export type UpstreamsOptions = z.output<typeof upstreamsOptions>
export type UpstreamsOptionsInput = z.input<typeof upstreamsOptions>
export type NodeOptions = z.output<typeof node>
export type NodeOptionsInput = z.input<typeof node>
export type HealthOptions = z.output<typeof health>
export type BreakerOptions = z.output<typeof breaker>
export type CallOptions = z.output<typeof calls>
export type ConnectionOptions = z.output<typeof connections>

export function parseUpstreamsOptions(input: UpstreamsOptionsInput = {}): UpstreamsOptions {
  return upstreamsOptions.parse(input)
}

/** A dedicated node of a subscription, as the access store records it. */
export type DedicatedNodeOptions = {
  readonly name: string
  /** Empty where the node has no such endpoint. */
  readonly rpc: string
  readonly ws: string
  readonly grpc: string
  readonly credential: string | null
  readonly subscriptionId: string
}
