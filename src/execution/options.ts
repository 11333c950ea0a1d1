import { z } from 'zod'
import { listenerOption } from '../contract/listener-option.ts'
import { BLOCKED_BY_DEFAULT, RAW_EVENTS } from '../contract/stream-events.ts'

const MIB = 1024 * 1024

export const executionOptions = z.strictObject({
  enabled: z.boolean().default(true).describe('Run the execution service in `serve`.'),
  ...listenerOption('127.0.0.1:8443'),
  auth: z
    .enum(['none', 'token'])
    .default('none')
    .describe('"token" asks for a token of any subscription; the page and /health stay open.'),
  ring: z
    .string()
    .min(1)
    .optional()
    .describe('Path of the execution event ring. Without it, and without a node, the simulated chain writes one.'),
  node: z
    .strictObject({
      rpc: z
        .string()
        .regex(
          /^(https?:\/\/[^\s?#@]+|(file|env):.+)$/,
          'give an http address without credentials, or file:PATH or env:NAME',
        )
        .describe('JSON-RPC address of the node. One that holds a key is given by reference: file:PATH or env:NAME.'),
      credential: z
        .string()
        .regex(/^(file|env):.+$/, 'give file:PATH or env:NAME')
        .optional()
        .describe('Reference to a secret sent as Authorization: Bearer.'),
      pollMs: z.int().min(100).max(60_000).default(1000).describe('How often the node is asked for its newest block.'),
    })
    .optional()
    .describe('An EVM node that can trace, instead of a ring. It tells what was accessed, and no durations.'),
  ringStart: z
    .enum(['newest-block', 'oldest'])
    .default('newest-block')
    .describe('Where reading begins: with the newest block, or with the oldest that the ring still holds.'),
  ringRead: z
    .enum(['auto', 'mapped', 'positional'])
    .default('auto')
    .describe(
      'How the ring is read. "mapped" takes less time; a ring that is cut short under it can end the process, which "positional" cannot. "auto" maps a ring on hugetlbfs, where a node keeps it.',
    ),
  trustedProxies: z
    .array(z.string())
    .max(64)
    .default([])
    .describe('Addresses or networks of proxies whose x-forwarded-for is believed.'),
  connectionsMax: z.int().min(1).max(100_000).default(10_000).describe('WebSocket connections in all.'),
  connectionsPerAddress: z
    .int()
    .min(1)
    .max(100_000)
    .default(10)
    .describe('WebSocket connections of one address; loopback is not counted. One more is answered with 429.'),
  subscribeItemsMax: z.int().min(4).max(29).default(8).describe('Items one subscription may have.'),
  blockedEvents: z
    .array(z.enum(RAW_EVENTS))
    .default([...BLOCKED_BY_DEFAULT])
    .describe('Raw events that are not offered.'),
  resume: z
    .strictObject({
      entriesMax: z.int().min(1).max(10_000_000).default(100_000).describe('Frames kept for clients that come back.'),
      bytesMax: z
        .int()
        .min(MIB)
        .max(4096 * MIB)
        .default(64 * MIB)
        .describe('The same in bytes; whichever is reached first.'),
      eventsLingerMs: z
        .int()
        .min(0)
        .max(3_600_000)
        .default(300_000)
        .describe('How long raw events are kept after the last client that listened to them has left.'),
    })
    .prefault({})
    .describe('The resume buffer.'),
  client: z
    .strictObject({
      framesMax: z.int().min(16).max(1_000_000).default(4096).describe('Frames that wait for one client.'),
      bytesMax: z
        .int()
        .min(MIB)
        .max(1024 * MIB)
        .default(4 * MIB)
        .describe('The same in bytes.'),
      dropsMax: z.int().min(1).max(10_000_000).default(10_000).describe('Frames dropped before a client is closed.'),
      pingMs: z.int().min(1000).max(600_000).default(30_000).describe('Time between pings.'),
      pingsMissedMax: z.int().min(1).max(10).default(2).describe('Pings without any answer before a client is cut.'),
    })
    .prefault({})
    .describe('What one slow client may cost.'),
  topAccesses: z
    .strictObject({
      everyMs: z.int().min(100).max(600_000).default(5000).describe('How often TopAccesses is sent, if it changed.'),
      resetMs: z.int().min(1000).max(86_400_000).default(300_000).describe('How often its counters begin again.'),
    })
    .prefault({})
    .describe('Most accessed accounts and slots.'),
  blocks: z
    .strictObject({
      heldMax: z.int().min(1).max(10_000).default(128).describe('Blocks held in memory for JSON-RPC.'),
      bytesMax: z
        .int()
        .min(MIB)
        .max(4096 * MIB)
        .default(64 * MIB)
        .describe('The same in bytes.'),
    })
    .prefault({})
    .describe('Blocks that POST / answers about.'),
  corsOrigins: z
    .array(z.string().regex(/^https?:\/\/[^/\s]+$/, 'give an origin such as https://app.example.com'))
    .max(64)
    .default([])
    .describe('Origins of web pages that may call POST /. Reads are open to any origin.'),
  work: z
    .strictObject({
      unitsPerSecond: z
        .int()
        .min(10)
        .max(1_000_000)
        .default(2000)
        .describe('Work of one client address, or of one subscription where tokens are asked for.'),
      burstUnits: z
        .int()
        .min(1000)
        .max(10_000_000)
        .default(10_000)
        .describe('Units that a client may save up and use at once.'),
    })
    .prefault({})
    .describe(
      'The budget of work for each client. A unit is one to three tenths of a millisecond: a call costs 1, a block searched for logs 1, each 4 KiB of a response 1.',
    ),
  rpc: z
    .strictObject({
      requestBytesMax: z
        .int()
        .min(1024)
        .max(4 * MIB)
        .default(MIB / 8)
        .describe('Bytes of one request body.'),
      batchItemsMax: z.int().min(1).max(1000).default(100).describe('Calls in one batch.'),
      logBlocksMax: z.int().min(1).max(10_000).default(1000).describe('Blocks of one eth_getLogs.'),
      responseBytesMax: z
        .int()
        .min(64 * 1024)
        .max(256 * MIB)
        .default(16 * MIB)
        .describe('Bytes of one response. A client may have twice as many unread, all clients together eight times.'),
      requestsPerClientMax: z.int().min(1).max(1000).default(32).describe('Requests of one client at the same time.'),
      renderedBytesMax: z
        .int()
        .min(0)
        .max(4096 * MIB)
        .default(32 * MIB)
        .describe('Blocks and receipts kept as text for the next caller, in bytes.'),
    })
    .prefault({})
    .describe('Limits of POST /.'),
})

export type ExecutionOptions = z.output<typeof executionOptions>
