import { z } from 'zod'
import { listenerOption, originsOption } from '../contract/listener-option.ts'
import { integer, section } from '../contract/option-fields.ts'
import { publicUrlOption } from '../contract/public-url-option.ts'
import { BLOCKED_BY_DEFAULT, RAW_EVENTS } from '../contract/stream-events.ts'
import { networkOption } from '../platform/config/network-option.ts'
import { isSecretRef, SECRET_REF_RULE } from '../platform/config/secret-ref.ts'

const MIB = 1024 * 1024

const fields = z.strictObject({
  enabled: z.boolean().default(true).describe('Run the execution service in `serve`.'),
  ...listenerOption('127.0.0.1:8443'),
  ...publicUrlOption('http'),
  auth: z
    .enum(['none', 'token'])
    .default('none')
    .describe('"token" requires a token of any subscription; the page and /health stay open.'),
  ring: z.string().min(1).optional().describe('Path of the execution event ring of a node on this machine.'),
  node: z
    .strictObject({
      rpc: z
        .string()
        .regex(
          /^(https?:\/\/[^\s?#@]+|(file|env):.+)$/,
          'give an http address without credentials, or file:PATH or env:NAME',
        )
        .refine((text) => isSecretRef(text) || /^https?:/.test(text), SECRET_REF_RULE)
        .describe('JSON-RPC URL of the node. A URL that contains a key is given by reference: file:PATH or env:NAME.'),
      credential: z
        .string()
        .refine(isSecretRef, SECRET_REF_RULE)
        .optional()
        .describe('Reference to a secret sent as Authorization: Bearer.'),
      pollMs: integer(100, 60_000).default(1000).describe('How often the node is polled for its newest block.'),
    })
    .optional()
    .describe('An EVM node with tracing, instead of a ring. It provides accesses, but no durations.'),
  simulated: z
    .boolean()
    .optional()
    .describe(
      'Run a simulated EVM chain and serve its data, marked as simulated (default: only where nothing real is configured: no upstreams.nodes, no ring, no node). With upstreams.nodes and none of ring, node and simulated = true, `serve` runs without this service.',
    ),
  ringStart: z
    .enum(['newest-block', 'oldest'])
    .default('newest-block')
    .describe('Where reading starts: at the newest block, or at the oldest one in the ring.'),
  ringRead: z
    .enum(['auto', 'mapped', 'positional'])
    .default('auto')
    .describe(
      'How the ring is read. "mapped" is faster, but a ring that is truncated while mapped can end the process; "positional" is safe. "auto" maps a ring on hugetlbfs, where a node keeps it.',
    ),
  trustedProxies: z
    .array(networkOption)
    .max(64)
    .default([])
    .describe('Addresses or networks of proxies whose x-forwarded-for header is trusted.'),
  connectionsMax: integer(1, 100_000).default(10_000).describe('Maximum number of WebSocket connections.'),
  connectionsPerAddress: integer(1, 100_000)
    .default(10)
    .describe('Maximum number of WebSocket connections per address; loopback is not counted. Further ones get 429.'),
  connectionsPerSubscription: integer(1, 100_000)
    .default(100)
    .describe(
      'Maximum number of WebSocket connections per subscription, from all addresses, where tokens are required. Further ones get 429.',
    ),
  wsCompression: z
    .boolean()
    .default(false)
    .describe(
      'Accept permessage-deflate on the WebSocket. Each frame from 512 bytes to 256 KiB is compressed once for all clients that asked for it.',
    ),
  subscribeItemsMax: integer(4, 29).default(8).describe('Maximum number of items in a subscription.'),
  blockedEvents: z
    .array(z.enum(RAW_EVENTS))
    .default([...BLOCKED_BY_DEFAULT])
    .describe('Raw events that clients cannot subscribe to.'),
  resume: section('The resume buffer.', {
    entriesMax: integer(1, 10_000_000).default(100_000).describe('Frames kept for clients that resume.'),
    bytesMax: integer(MIB, 4096 * MIB)
      .optional()
      .describe(
        'The same limit in bytes; the lower one applies (default: 67108864, 64 MiB; 4194304, 4 MiB, where the events are simulated).',
      ),
    eventsLingerMs: integer(0, 3_600_000)
      .default(300_000)
      .describe('How long raw events are recorded after their last subscriber has disconnected.'),
  }),
  client: section('Limits of one client.', {
    framesMax: integer(16, 1_000_000).default(4096).describe('Frames queued for one client.'),
    bytesMax: integer(MIB, 1024 * MIB)
      .default(4 * MIB)
      .describe('The same in bytes.'),
    dropsMax: integer(1, 10_000_000).default(10_000).describe('Dropped frames before a client is disconnected.'),
    pingMs: integer(1000, 600_000).default(30_000).describe('Time between pings.'),
    pingsMissedMax: integer(1, 10)
      .default(2)
      .describe('Ping periods without a frame of a client after which it is disconnected.'),
  }),
  topAccesses: section('Most accessed accounts and slots.', {
    everyMs: integer(100, 600_000).default(5000).describe('How often TopAccesses is sent, if it changed.'),
    resetMs: integer(1000, 86_400_000).default(300_000).describe('How often its counters are reset.'),
  }),
  blocks: section('Blocks available to JSON-RPC.', {
    heldMax: integer(1, 10_000)
      .optional()
      .describe('Blocks held in memory for JSON-RPC (default: 128; 32 where the events are simulated).'),
    bytesMax: integer(MIB, 4096 * MIB)
      .default(64 * MIB)
      .describe('The same in bytes.'),
    diskMax: integer(0, 100_000)
      .default(10_000)
      .describe('Blocks held on disk for JSON-RPC, over restarts; 0 holds none. Each takes about 1 KiB of memory.'),
    diskBytesMax: integer(MIB, 1024 * 1024 * MIB)
      .default(512 * MIB)
      .describe('The same in bytes, compressed; the lower limit applies.'),
  }),
  history: section('The history of GET /v1/history: an hour of seconds, the last blocks, incidents.', {
    blocksMax: integer(16, 2048)
      .default(512)
      .describe('Blocks in the history, proposals that were abandoned included. Each takes about 10 KiB of memory.'),
    diskBytesMax: integer(0, 1024 * MIB)
      .default(16 * MIB)
      .describe('Bytes of the history on disk, over restarts; 0 keeps none there.'),
  }),
  corsOrigins: originsOption('Origins of web pages that may call POST /. Reads are open to any origin.'),
  work: section(
    'Work budget of each client. A unit is 0.1 to 0.3 ms: a call costs 1, a block searched for logs 1, each 4 KiB of a response 1.',
    {
      unitsPerSecond: integer(10, 1_000_000)
        .default(2000)
        .describe('Work per client address, or per subscription where tokens are required.'),
      burstUnits: integer(1000, 10_000_000).default(10_000).describe('Units that a client can save up for a burst.'),
    },
  ),
  rpc: section('Limits of POST /.', {
    requestBytesMax: integer(1024, 4 * MIB)
      .default(MIB / 8)
      .describe('Bytes of one request body.'),
    batchItemsMax: integer(1, 1000).default(100).describe('Calls in one batch.'),
    logBlocksMax: integer(1, 10_000).default(1000).describe('Blocks of one eth_getLogs.'),
    responseBytesMax: integer(64 * 1024, 256 * MIB)
      .default(16 * MIB)
      .describe('Bytes of one response. One client may have twice this unread, all clients together eight times.'),
    requestsPerClientMax: integer(1, 1000).default(32).describe('Concurrent requests of one client.'),
    renderedBytesMax: integer(0, 4096 * MIB)
      .default(32 * MIB)
      .describe('Cache of rendered blocks and receipts, in bytes.'),
  }),
})

/** Each block that is searched for logs costs a unit, and no client can save up more than its burst. */
export const executionOptions = fields.refine(({ rpc, work }) => rpc.logBlocksMax <= work.burstUnits, {
  path: ['rpc', 'logBlocksMax'],
  error: 'must not be above execution.work.burstUnits: a call for more blocks would be refused whenever it comes',
})

export type ExecutionOptions = z.output<typeof executionOptions>
