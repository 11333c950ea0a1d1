import { z } from 'zod'
import { accessOptions, plansSchema } from '../../../access/options.ts'
import { billingOptions } from '../../../admin/billing/options.ts'
import { noticesOptions } from '../../../admin/notices/options.ts'
import { adminOptions } from '../../../admin/options.ts'
import { listenerOption } from '../../../contract/listener-option.ts'
import { integer, section } from '../../../contract/option-fields.ts'
import { productsOptions } from '../../../contract/product-options.ts'
import { executionOptions } from '../../../execution/options.ts'
import { gatewayOptions } from '../../../gateway/options.ts'
import { indexerOptions } from '../../../indexer/options.ts'
import { localnetOptions } from '../../../localnet/options.ts'
import { isSecretRef, SECRET_REF_RULE } from '../../../platform/config/secret-ref.ts'
import { senderOptions } from '../../../sender/options.ts'
import { shredsOptions } from '../../../shreds/options.ts'
import { upstreamsOptions } from '../../../upstreams/options.ts'

const MIB = 2 ** 20

/**
 * The config file: the options of every module. Defaults are in the `options.ts` of each module; an unknown key is an error.
 */
export const configSchema = z.strictObject({
  host: z
    .string()
    .regex(
      /^[^\s/:]+$|^\[[0-9a-fA-F:]+\]$/,
      'give a host name or address without scheme and port, an IPv6 address in brackets',
    )
    .optional()
    .describe(
      'Host name that customers connect to, for endpoints without a publicUrl: the address is then this name with the port of the listener.',
    ),
  state: z
    .string()
    .min(1)
    .optional()
    .describe(
      'State folder, relative to this file; --state and SLUICE_STATE override it (default: .sluice in the folder of the start).',
    ),
  log: section('Log: JSON lines on standard output.', {
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .describe('Lowest level that is logged. Applied on reload.'),
  }),
  metrics: section('Operator metrics: /metrics, /healthz, /readyz.', {
    ...listenerOption('127.0.0.1:9464'),
    bearer: z
      .string()
      .refine(isSecretRef, SECRET_REF_RULE)
      .optional()
      .describe('Reference to a secret that scrapers of /metrics must send as Authorization: Bearer.'),
    hosts: z
      .array(z.string().regex(/^[^\s/:]+$/, 'give a host name without scheme and port'))
      .max(64)
      .default([])
      .describe(
        'Host names that scrapers and load balancers use for this listener, besides localhost, IP addresses and the name in listen. Requests with another Host are refused with 421.',
      ),
  }),
  drain: section('Graceful shutdown.', {
    lameDuckMs: integer(0, 60_000)
      .default(5000)
      .describe(
        'Time between not ready and closing the sockets. Where it is not below deadlineMs, it is half of that, so that requests can finish.',
      ),
    deadlineMs: integer(1000, 300_000)
      .default(25_000)
      .describe(
        'Time from the first signal to the exit, even if requests are open. Above 35 s raise TimeoutStopSec= of the unit or the stop time of the container too: both end the process after 40 s.',
      ),
  }),
  memory: section('Memory limits: new connections are refused before existing ones are affected.', {
    residentBytesMax: integer(64 * MIB, 1024 * 1024 * MIB)
      .default(1536 * MIB)
      .describe(
        'Memory limit of this process, without its child processes. Above 80 % new WebSocket, gRPC and execution connections are refused, above 90 % all new connections except to the operator metrics.',
      ),
    heldBytesMax: integer(MIB, 1024 * 1024 * MIB)
      .optional()
      .describe(
        'Buffered bytes of incomplete requests and unread responses (default: an eighth of residentBytesMax). Beyond it batches are refused and clients that do not read are disconnected.',
      ),
    heldBytesPerSubscriptionMax: integer(256 * 1024, 1024 * 1024 * MIB)
      .optional()
      .describe('The same for one subscription (default: a quarter of heldBytesMax).'),
    heldWaitMs: integer(0, 60_000)
      .default(2000)
      .describe('How long a response waits for buffer space before the call fails with an error that names the limit.'),
  }),
  notices: noticesOptions,
  access: accessOptions.omit({ plans: true }).prefault({}).describe('Customers, tokens and quota.'),
  plans: plansSchema.describe(
    'Plans in addition to the five built-in ones; a plan of the same name replaces a built-in one.',
  ),
  billing: billingOptions.prefault({}).describe('Events with usage for a billing system.'),
  products: productsOptions.prefault({}).describe('Products that are offered as a preview.'),
  bundle: gatewayOptions.prefault({}).describe('Bundle: JSON-RPC, WebSocket and gRPC with one token.'),
  sender: senderOptions.prefault({}).describe('TPU Sender: submission of tipped transactions.'),
  shreds: shredsOptions.prefault({}).describe('ShredStream Raw: relays shreds from your receivers to customers.'),
  execution: executionOptions
    .prefault({})
    .describe('Execution service: stream, REST and JSON-RPC of an EVM node, and the dashboard.'),
  indexer: indexerOptions.prefault({}).describe('Indexer: chain data in tables, with SQL over HTTP.'),
  admin: adminOptions.prefault({}).describe('Admin API and console for the operator.'),
  upstreams: upstreamsOptions.prefault({}).describe('Upstream nodes. Without any, the embedded chain is used.'),
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

export type ConfigSection = keyof Config

/** Former names of keys, which are accepted until 0.2, and the present ones. */
export const FORMER_KEYS = [['bundle.cache.answerBytesMax', 'bundle.cache.responseBytesMax']] as const

/** JSON Schema of the config file, for editors and docs/config.md. */
export function configJsonSchema(): JsonSchema {
  return z.toJSONSchema(configSchema, { io: 'input' }) as JsonSchema
}

export type JsonSchema = {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly deprecated?: boolean
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  /** The schema of the items of an array. */
  readonly items?: JsonSchema
  readonly additionalProperties?: JsonSchema | boolean
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
}
