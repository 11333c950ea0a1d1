import { z } from 'zod'
import { accessOptions, plansSchema } from '../../../access/options.ts'
import { listenerOption } from '../../../contract/listener-option.ts'
import { executionOptions } from '../../../execution/options.ts'
import { bundleOptions } from '../../../gateway/options.ts'
import { indexerOptions } from '../../../indexer/options.ts'
import { localnetOptions } from '../../../localnet/options.ts'
import { senderOptions } from '../../../sender/options.ts'
import { shredsOptions } from '../../../shreds/options.ts'
import { upstreamsOptions } from '../../../upstreams/options.ts'

const MIB = 2 ** 20

/**
 * The one file an operator writes: every room's options joined. A room's defaults live in its own `options.ts`; a misspelt key stops the start.
 */
export const configSchema = z.strictObject({
  host: z
    .string()
    .regex(/^[^\s/:]+$|^\[[0-9a-fA-F:]+\]$/, 'give a host name or address without scheme and port')
    .default('127.0.0.1')
    .describe('Host name customers use; it stands on handover cards.'),
  log: z
    .strictObject({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
        .default('info')
        .describe('The least level that is logged. Changes with a reload.'),
    })
    .prefault({})
    .describe('Log: JSON lines on standard output.'),
  metrics: z
    .strictObject({
      ...listenerOption('127.0.0.1:9464'),
      bearer: z
        .string()
        .regex(/^(file|env):.+$/, 'give file:PATH or env:NAME')
        .optional()
        .describe('Reference to a secret that scrapers of /metrics must show as Authorization: Bearer.'),
      hosts: z
        .array(z.string().regex(/^[^\s/:]+$/, 'give a host name without scheme and port'))
        .max(64)
        .default([])
        .describe(
          'Names by which scrapers and balancers reach this listener, beside localhost, addresses and the name in listen. A request for another Host is refused with 421.',
        ),
    })
    .prefault({})
    .describe('Operator metrics: /metrics, /healthz, /readyz.'),
  drain: z
    .strictObject({
      lameDuckMs: z.int().min(0).max(60_000).default(5000).describe('From readiness gone to sockets closed.'),
      deadlineMs: z
        .int()
        .min(1000)
        .max(300_000)
        .default(25_000)
        .describe('From the first signal to the end, whatever is open.'),
    })
    .prefault({})
    .describe('How a process leaves.'),
  memory: z
    .strictObject({
      residentBytesMax: z
        .int()
        .min(64 * MIB)
        .max(1024 * 1024 * MIB)
        .default(1536 * MIB)
        .describe(
          'What this process may take, its children not counted. From 80 % of it in use on no WebSocket, gRPC or execution connection is taken in, from 90 % on no connection at all, but for the operator metrics.',
        ),
      heldBytesMax: z
        .int()
        .min(MIB)
        .max(1024 * 1024 * MIB)
        .optional()
        .describe(
          'Bytes of requests and responses held at once because they are not complete or their client does not read (default: an eighth of residentBytesMax). Beyond it batches are refused, and clients that do not read are cut.',
        ),
      heldBytesPerSubscriptionMax: z
        .int()
        .min(256 * 1024)
        .max(1024 * 1024 * MIB)
        .optional()
        .describe('The same for one subscription (default: a quarter of heldBytesMax).'),
      heldWaitMs: z
        .int()
        .min(0)
        .max(60_000)
        .default(2000)
        .describe('How long a response waits for room before the call is answered with an error that names the limit.'),
    })
    .prefault({})
    .describe('Memory: who is new is turned away before who is connected suffers.'),
  access: accessOptions.omit({ plans: true }).prefault({}).describe('Customers, tokens and quota.'),
  plans: plansSchema.describe('Plans beside the built-in five; one of the same name takes its place.'),
  bundle: bundleOptions.prefault({}).describe('Bundle: what one token opens.'),
  sender: senderOptions.prefault({}).describe('TPU Sender: tipped transactions in, landed transactions out.'),
  shreds: shredsOptions.prefault({}).describe('ShredStream Raw: shreds in from your receivers, out to customers.'),
  execution: executionOptions
    .prefault({})
    .describe('Execution service: stream, REST and JSON-RPC of an EVM node, and the dashboard.'),
  indexer: indexerOptions.prefault({}).describe('Indexer: the chain in tables, and SQL over HTTP.'),
  upstreams: upstreamsOptions.prefault({}).describe('The nodes behind; without any the embedded chain is used.'),
  localnet: localnetOptions
    .omit({ stateDir: true, rpc: true, ws: true, grpc: true, shreds: true })
    .extend({
      enabled: z
        .boolean()
        .optional()
        .describe('Run the embedded chain in `serve` (default: when no upstream is configured).'),
    })
    .prefault({})
    .describe('The embedded Solana chain.'),
})

export type Config = z.output<typeof configSchema>

export type ConfigPart = keyof Config

/** What `serve` uses of the configuration: all but what is switched off. `enabled` counts for `serve` alone. */
export function servedParts(config: Config): ConfigPart[] {
  return (Object.keys(config) as ConfigPart[]).filter((name) => {
    const part = config[name]
    return !(typeof part === 'object' && 'enabled' in part && part.enabled === false)
  })
}

/** JSON Schema of the file as it is written: what editors complete from and documents are made of. */
export function configJsonSchema(): JsonSchema {
  return z.toJSONSchema(configSchema, { io: 'input' }) as JsonSchema
}

export type JsonSchema = {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
}
