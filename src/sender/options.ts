import { z } from 'zod'
import { listenerOption } from '../contract/listener-option.ts'
import { isSecretRef, SECRET_REF_RULE } from '../platform/config/secret-ref.ts'
import { parseRemoteAddress } from '../platform/net/pinned-address.ts'
import { decodeBase58 } from '../solana/crypto/base58.ts'
import { SIGNATURES_MAX } from '../solana/transaction/types.ts'

/** The specification's minimum; a configured one may be higher, never lower. */
const TIP_LAMPORTS_FLOOR = 1_000_000
const TIP_ACCOUNTS_MAX = 32
const PATHS_MAX = 16
/** Names that metrics keep for the paths which are always there. */
const KEPT_NAMES = ['upstreams', 'quic', 'other']

const tipAccount = z.string().refine(isPublicKey, 'give the base58 address of an account')

const path = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a path name has a-z, 0-9 and dashes')
    .refine((name) => !KEPT_NAMES.includes(name), 'this name is kept for metrics')
    .describe('Shown in receipts, and the label of its metrics.'),
  url: z
    .string()
    .refine(
      (text) => parseRemoteAddress(text, ['http:', 'https:']) !== undefined,
      'give an address such as https://relay.example.net/api/v1/transactions, without credentials and without a query',
    )
    .describe('Where sendTransaction is posted.'),
  credential: z.string().refine(isSecretRef, SECRET_REF_RULE).optional().describe('Reference to its credential.'),
  credentialHeader: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,62}$/, 'a header name in lower case')
    .default('x-token')
    .describe('The header the credential goes in.'),
  allowPrivate: z.boolean().default(false).describe('Lets it be on loopback or in a private network.'),
  perSecond: z
    .int()
    .min(1)
    .max(100_000)
    .default(1000)
    .describe('Sent to it at most so often; more are not sent there.'),
  inFlightMax: z.int().min(1).max(10_000).default(256).describe('Answers awaited from it at once.'),
})

const limits = z.strictObject({
  perAddressPerSecond: z.int().min(1).max(1_000_000).default(20).describe('sendTransaction calls of one address.'),
  perAddressBurst: z.int().min(1).max(1_000_000).default(40).describe('What an address may save up.'),
  signaturesPerAddressPerSecond: z
    .int()
    .min(SIGNATURES_MAX)
    .max(1_000_000)
    .optional()
    .describe(
      `Signatures checked for one address; those of a second may come at once. By default twice perAddressPerSecond, and at least ${SIGNATURES_MAX}.`,
    ),
  perPayerPerSecond: z.int().min(1).max(1_000_000).default(20).describe('Transactions of one fee payer.'),
  perPayerBurst: z.int().min(1).max(1_000_000).default(40).describe('What a fee payer may save up.'),
  readsPerAddressPerSecond: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(50)
    .describe('Requests of one address that send nothing: receipts, tips, health and the like.'),
  checkingMax: z
    .int()
    .min(1)
    .max(100_000)
    .default(512)
    .describe('Transactions being checked, or accepted and not yet on the disk.'),
  checkDelayMsMax: z
    .int()
    .min(1)
    .max(10_000)
    .default(10)
    .describe(
      'Milliseconds that a transaction may have to wait for its check; one that would wait longer is turned away.',
    ),
  pendingMax: z.int().min(1).max(1_000_000).default(10_000).describe('Transactions on their way to the chain.'),
  pendingPerAddressMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(1000)
    .describe('Of these, transactions that came from one address.'),
  pendingPerPayerMax: z.int().min(1).max(1_000_000).default(500).describe('Of these, transactions of one fee payer.'),
  resendsPerSecond: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(1000)
    .describe('Transactions sent again per second; new ones are sent at once, beside this.'),
  receiptsMax: z.int().min(1).max(1_000_000).default(50_000).describe('Receipts kept; the oldest go first.'),
  waitersMax: z.int().min(1).max(100_000).default(1000).describe('Receipts waited for with ?wait= at once.'),
  waitersPerAddressMax: z
    .int()
    .min(1)
    .max(100_000)
    .default(100)
    .describe('Of these, receipts waited for by one address.'),
})

const quic = z.strictObject({
  enabled: z.boolean().default(true).describe('Sends straight to leaders where the upstream tells their address.'),
  identity: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Keypair file (0600) whose stake the connections carry; default keys/sender-identity.json, made on first start.',
    ),
  leaders: z.int().min(1).max(8).default(2).describe('Sent to the leader of now and to so many in all.'),
  warmLeaders: z.int().min(1).max(32).default(8).describe('Connections are made ready for so many coming leaders.'),
  connectionsMax: z.int().min(1).max(256).default(32).describe('Connections to leaders at once.'),
  perLeaderPerSecond: z
    .int()
    .min(1)
    .max(10_000)
    .default(180)
    .describe('Transactions to one leader; an unstaked connection is cut off above 200.'),
  allowPrivate: z.boolean().default(false).describe('Lets leaders be on loopback or in private networks.'),
})

export const senderOptions = z.strictObject({
  enabled: z.boolean().default(true).describe('Run the sender.'),
  ...listenerOption('127.0.0.1:8901'),
  tipAccounts: z
    .array(tipAccount)
    .max(TIP_ACCOUNTS_MAX)
    .refine((accounts) => new Set(accounts).size === accounts.length, 'an account stands there twice')
    .default([])
    .describe('Public keys that tips go to; without any the first start makes five under keys/.'),
  minTipLamports: z
    .int()
    .min(TIP_LAMPORTS_FLOOR)
    .max(1_000_000_000_000)
    .default(TIP_LAMPORTS_FLOOR)
    .describe('The least tip; never below 1,000,000.'),
  trustedProxies: z
    .array(z.string())
    .max(64)
    .default([])
    .describe('Proxies in front whose X-Forwarded-For is believed.'),
  limits: limits.prefault({}).describe('Limits of the open door.'),
  resendMs: z
    .int()
    .min(100)
    .max(60_000)
    .default(2000)
    .describe('A transaction that has not landed is sent again after this.'),
  endMs: z.int().min(1000).max(600_000).default(90_000).describe('It is given up after this, landed or not.'),
  checkThreads: z
    .int()
    .min(0)
    .max(32)
    .optional()
    .describe(
      'Threads that check signatures; by default one for each core but one, at most 4. With 0 the threads of the runtime do it.',
    ),
  journalSync: z
    .boolean()
    .default(true)
    .describe(
      'A transaction is answered once the disk has it. Without it the death of the machine, not of the process, may forget accepted ones.',
    ),
  upstreams: z.boolean().default(true).describe('Sends through the upstream nodes.'),
  rpc: z.array(path).max(PATHS_MAX).default([]).describe('Other RPC nodes to send to.'),
  relays: z.array(path).max(PATHS_MAX).default([]).describe('Relays of the block-engine kind to send to.'),
  quic: quic.prefault({}).describe('QUIC straight to leaders.'),
})

export type SenderOptions = z.output<typeof senderOptions>
export type SenderOptionsInput = z.input<typeof senderOptions>
export type PathOptions = z.output<typeof path>
export type SenderLimits = z.output<typeof limits>
export type QuicOptions = z.output<typeof quic>

export function parseSenderOptions(input: SenderOptionsInput = {}): SenderOptions {
  return senderOptions.parse(input)
}

function isPublicKey(text: string): boolean {
  try {
    return text.length <= 44 && decodeBase58(text).length === 32
  } catch {
    return false
  }
}
