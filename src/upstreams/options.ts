import { z } from 'zod'
import { isSecretRef, SECRET_REF_RULE } from '../platform/config/secret-ref.ts'
import { parseRemoteAddress } from '../platform/net/pinned-address.ts'

const NODES_MAX = 64

const HTTP = ['http:', 'https:']
const WS = ['ws:', 'wss:']

const address = (protocols: readonly string[], example: string) =>
  z
    .string()
    .refine(
      (text) => parseRemoteAddress(text, protocols) !== undefined,
      `give an address such as ${example}, without credentials and without a query`,
    )

const credentialHeader = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,62}$/, 'a header name in lower case')
  .refine((name) => !RESERVED_HEADERS.includes(name), 'this header belongs to the protocol')
const RESERVED_HEADERS = ['host', 'content-length', 'content-type', 'connection', 'transfer-encoding', 'te', 'upgrade']

const nodeName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a node name has a-z, 0-9 and dashes')
  .refine((name) => name !== 'dedicated' && name !== 'other', 'this name is kept for metrics')

const node = z
  .strictObject({
    name: nodeName.describe('Shown to the operator, and the label of its metrics.'),
    rpc: address(HTTP, 'http://10.0.0.1:8899').optional().describe('JSON-RPC.'),
    ws: address(WS, 'ws://10.0.0.1:8900').optional().describe('PubSub.'),
    grpc: address(HTTP, 'http://10.0.0.1:10000').optional().describe('Yellowstone gRPC.'),
    credential: z
      .string()
      .refine(isSecretRef, SECRET_REF_RULE)
      .optional()
      .describe("Reference to this node's own credential."),
    credentialHeader: credentialHeader
      .default('x-token')
      .describe('The header the credential goes in; in authorization it follows the word Bearer.'),
    allowPrivate: z
      .boolean()
      .optional()
      .describe('Lets this node be on loopback or in a private network; default: as for all nodes.'),
    weight: z.int().min(1).max(100).default(1).describe('How much of the load it takes beside the others.'),
  })
  .refine(
    ({ rpc, ws, grpc }) => rpc !== undefined || ws !== undefined || grpc !== undefined,
    'a node has at least one of rpc, ws and grpc',
  )

const health = z.strictObject({
  probeMs: z.int().min(100).max(60_000).default(1000).describe('How often each node is asked for its slot.'),
  probeTimeoutMs: z.int().min(100).max(60_000).default(2000).describe('How long it may take to say it.'),
  lagSlotsMax: z.int().min(1).max(100_000).default(25).describe('Further behind the best node: out of rotation.'),
  shredLagSlotsMax: z
    .int()
    .min(1)
    .max(100_000)
    .default(100)
    .describe('Further behind the shreds it has itself received: out of rotation.'),
  stallMs: z
    .int()
    .min(500)
    .max(60_000)
    .default(2000)
    .describe('A WebSocket that tells no slot for so long while the chain moves is replaced.'),
})

const breaker = z.strictObject({
  failuresInRow: z.int().min(1).max(1000).default(5).describe('So many failed calls in a row take a node out.'),
  failuresShare: z.number().gt(0).max(1).default(0.5).describe('So does this share of the last ten seconds.'),
  failuresShareCalls: z.int().min(1).max(100_000).default(20).describe('The share counts from so many calls on.'),
  firstMs: z
    .int()
    .min(10)
    .max(60_000)
    .default(100)
    .describe('A node that is out is tried again after this, then later.'),
  maxMs: z.int().min(10).max(60_000).default(1500).describe('It is tried at least this often.'),
})

const calls = z.strictObject({
  deadlineMs: z.int().min(100).max(600_000).default(10_000).describe('From forwarding a call to its answer.'),
  heavyDeadlineMs: z.int().min(100).max(600_000).default(60_000).describe('The same for heavy methods.'),
  retryShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe('Reads asked of a second node, at most, as a share of all calls.'),
})

const connections = z.strictObject({
  rpcPerNodeMax: z.int().min(1).max(10_000).default(256).describe('HTTP connections to one node.'),
  rpcWaitingMax: z.int().min(0).max(100_000).default(1024).describe('Calls that may wait for one of them.'),
  wsPerNodeMax: z.int().min(1).max(256).default(8).describe('WebSocket connections to one node.'),
  wsSubscriptionsMax: z.int().min(1).max(100_000).default(1000).describe('Subscriptions on one of them.'),
  grpcPerNodeMax: z.int().min(1).max(256).default(8).describe('gRPC connections to one node.'),
})

export const upstreamsOptions = z.strictObject({
  nodes: z
    .array(node)
    .max(NODES_MAX)
    .default([])
    .refine((nodes) => new Set(nodes.map(({ name }) => name)).size === nodes.length, 'two nodes have the same name')
    .describe('The nodes that serve every subscription without nodes of its own.'),
  allowPrivate: z
    .boolean()
    .default(false)
    .describe('Lets nodes be on loopback or in private networks. Link-local and metadata addresses never are.'),
  dedicatedCredentialHeader: credentialHeader
    .default('x-token')
    .describe('The header that carries the credential of a dedicated node.'),
  health: health.prefault({}).describe('When a node is in rotation.'),
  breaker: breaker.prefault({}).describe('When a failing node is left alone.'),
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

/** A node that one subscription has for itself, as the access store records it. */
export type DedicatedNodeOptions = {
  readonly name: string
  /** Empty where the node does not have it. */
  readonly rpc: string
  readonly ws: string
  readonly grpc: string
  readonly credential: string | null
  readonly subscriptionId: string
}
