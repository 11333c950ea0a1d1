import { z } from 'zod'
import { listenerOption } from '../contract/listener-option.ts'
import { integer, refuseSameNames } from '../contract/option-fields.ts'
import { publicUrlOption } from '../contract/public-url-option.ts'
import { ADDRESS_REF_RULE, isAddressRef } from '../platform/config/address-ref.ts'
import { credentialHeaderOption } from '../platform/config/credential-header.ts'
import { networkOption } from '../platform/config/network-option.ts'
import { isSecretRef, SECRET_REF_RULE } from '../platform/config/secret-ref.ts'
import { parseRemoteAddress } from '../platform/net/pinned-address.ts'
import { decodeBase58 } from '../solana/crypto/base58.ts'
import { ACCOUNT_INDEXES, SIGNATURES_MAX, TRANSACTION_LIMITS, WIRE_BYTES_MAX } from '../solana/transaction/types.ts'
import { PATH_PROTOCOLS } from './path-protocols.ts'

/** The minimum of the specification; a configured minimum may be higher, never lower. */
const TIP_LAMPORTS_FLOOR = 1_000_000
const TIP_ACCOUNTS_MAX = 32
const PATHS_MAX = 16
/** Four times the largest size known, so that a transaction of the next one can be let through. */
const TRANSACTION_BYTES_CEILING = 16_384
/** Path names reserved for the label `path` of the metrics. */
const RESERVED_NAMES = ['upstreams', 'quic', 'other']

const tipAccount = z.string().refine(isPublicKey, 'give the base58 address of an account')

const path = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a path name has a-z, 0-9 and dashes')
    .refine((name) => !RESERVED_NAMES.includes(name), 'this name is reserved for metrics')
    .describe('Shown in receipts and in the label `path` of metrics.'),
  url: z
    .string()
    .refine(
      (text) => isAddressRef(text) || parseRemoteAddress(text, PATH_PROTOCOLS) !== undefined,
      `give an address such as https://relay.example.net/api/v1/transactions; ${ADDRESS_REF_RULE}`,
    )
    .describe('URL that sendTransaction is posted to, or a reference to it.'),
  credential: z.string().refine(isSecretRef, SECRET_REF_RULE).optional().describe('Reference to its credential.'),
  credentialHeader: credentialHeaderOption.default('x-token').describe('Header that carries the credential.'),
  allowPrivate: z.boolean().default(false).describe('Allow an address on loopback or in a private network.'),
  perSecond: integer(1, 100_000)
    .default(1000)
    .describe('Transactions per second sent to it; more are not sent on this path.'),
  inFlightMax: integer(1, 10_000).default(256).describe('Requests in flight.'),
})

const limits = z.strictObject({
  perAddressPerSecond: integer(1, 1_000_000).default(20).describe('sendTransaction calls per second of one address.'),
  perAddressBurst: integer(1, 1_000_000).default(40).describe('Burst of one address.'),
  signaturesPerAddressPerSecond: integer(SIGNATURES_MAX, 1_000_000)
    .optional()
    .describe(
      `Signatures per second checked for one address, with a burst of one second. By default twice perAddressPerSecond, and at least ${SIGNATURES_MAX}.`,
    ),
  perPayerPerSecond: integer(1, 1_000_000).default(20).describe('Transactions per second of one fee payer.'),
  perPayerBurst: integer(1, 1_000_000).default(40).describe('Burst of one fee payer.'),
  readsPerAddressPerSecond: integer(1, 1_000_000)
    .default(50)
    .describe(
      'Other requests per second of one address: receipts, tips, health and the like, and requests that are refused before a transaction is read.',
    ),
  accountLocksMax: integer(1, ACCOUNT_INDEXES)
    .default(TRANSACTION_LIMITS.accountLocksMax)
    .describe('Accounts that a transaction may lock, static and loaded ones together; nodes have limits of their own.'),
  transactionBytesMax: integer(WIRE_BYTES_MAX, TRANSACTION_BYTES_CEILING)
    .default(TRANSACTION_LIMITS.transactionBytesMax)
    .describe('Bytes of a transaction in the formats legacy and v0.'),
  transactionV1BytesMax: integer(WIRE_BYTES_MAX, TRANSACTION_BYTES_CEILING)
    .default(TRANSACTION_LIMITS.transactionV1BytesMax)
    .describe('Bytes of a transaction in the format v1.'),
  checkingMax: integer(1, 100_000)
    .default(512)
    .describe('Transactions being checked, or accepted and not yet on disk.'),
  checkDelayMsMax: integer(1, 10_000)
    .default(10)
    .describe('Milliseconds that a transaction may wait for its check; one that would wait longer is refused.'),
  pendingMax: integer(1, 1_000_000).default(10_000).describe('Transactions accepted and not yet settled.'),
  pendingPerAddressMax: integer(1, 1_000_000).default(1000).describe('Of these, transactions from one address.'),
  pendingPerPayerMax: integer(1, 1_000_000).default(500).describe('Of these, transactions of one fee payer.'),
  resendsPerSecond: integer(1, 1_000_000)
    .default(1000)
    .describe('Transactions re-sent per second; new ones are not limited by this.'),
  receiptsMax: integer(1, 1_000_000)
    .default(50_000)
    .describe(
      'Receipts of settled transactions held, for up to 10 minutes; the oldest are removed first. Their signatures stay known for two minutes, so that none is sent twice.',
    ),
  knownSignaturesMax: integer(1, 10_000_000)
    .default(500_000)
    .describe('Signatures known without a receipt, about 0.3 KB each; beyond it new transactions are refused.'),
  waitersMax: integer(1, 100_000).default(1000).describe('Receipts waited for with ?wait= at once.'),
  waitersPerAddressMax: integer(1, 100_000).default(100).describe('Of these, receipts waited for by one address.'),
})

const quic = z.strictObject({
  enabled: z.boolean().default(true).describe('Send directly to leaders whose address the upstream nodes report.'),
  identity: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Keypair file (0600) of the identity whose stake the connections use; default keys/sender-identity.json, created on first start.',
    ),
  leaders: integer(1, 8).default(2).describe('Number of leaders to send to: the current one and those after it.'),
  warmLeaders: integer(1, 32)
    .optional()
    .describe(
      'Number of upcoming leaders to which connections are opened in advance. By default those of the next 12.8 s: 8 with slots of 400 ms, 16 at 200 ms.',
    ),
  connectionsMax: integer(1, 256).default(32).describe('Connections to leaders at once.'),
  perLeaderPerSecond: integer(1, 10_000)
    .default(180)
    .describe('Transactions per second to one leader; a validator closes an unstaked connection above 200.'),
  allowPrivate: z.boolean().default(false).describe('Allow leaders on loopback or in private networks.'),
})

const fields = z.strictObject({
  enabled: z.boolean().default(true).describe('Run the sender.'),
  ...listenerOption('127.0.0.1:8901'),
  ...publicUrlOption('http'),
  tipAccounts: z
    .array(tipAccount)
    .max(TIP_ACCOUNTS_MAX)
    .refine((accounts) => new Set(accounts).size === accounts.length, 'an account is listed twice')
    .default([])
    .describe('Public keys that tips are paid to; without any the first start creates five under keys/.'),
  minTipLamports: integer(TIP_LAMPORTS_FLOOR, 1_000_000_000_000)
    .default(TIP_LAMPORTS_FLOOR)
    .describe('Minimum tip; never below 1,000,000.'),
  trustedProxies: z
    .array(networkOption)
    .max(64)
    .default([])
    .describe('Proxies in front whose X-Forwarded-For is trusted.'),
  limits: limits.prefault({}).describe('Limits of the public endpoint.'),
  resendMs: integer(100, 60_000)
    .optional()
    .describe(
      'Interval after which a transaction that has not landed is sent again. By default five slots of the chain: 2000 at 400 ms, 1000 at 200 ms.',
    ),
  endMs: integer(1000, 600_000).default(90_000).describe('Time after which a transaction is no longer sent.'),
  checkThreads: integer(0, 32)
    .optional()
    .describe(
      'Threads that check signatures; by default one per core minus one, at most 4, and 0 with nothing but the embedded chain. 0 uses the thread pool of the runtime.',
    ),
  priority: z
    .enum(['normal', 'raised'])
    .default('normal')
    .describe(
      '`raised` is nice -9, for the event loop of the sender and the threads that check signatures for it: other threads of this service delay a transaction less. Where it is not permitted, that is logged and shown by `sluice status` and `sluice doctor`; `ops/systemd/relay-priority.conf` permits it, and gives the service more weight against other programs.',
    ),
  journalSync: z
    .boolean()
    .default(true)
    .describe(
      'Respond to a transaction only after it is synced to disk. Without it, a crash of the machine (not of the process) may lose accepted ones.',
    ),
  upstreams: z.boolean().default(true).describe('Send through the upstream nodes.'),
  rpc: z.array(path).max(PATHS_MAX).default([]).describe('Other RPC nodes to send to.'),
  relays: z.array(path).max(PATHS_MAX).default([]).describe('Relays of the block-engine kind to send to.'),
  quic: quic.prefault({}).describe('QUIC directly to leaders.'),
})

/** Receipts and metrics tell paths apart by their names. */
export const senderOptions = fields.superRefine(({ rpc, relays }, context) =>
  refuseSameNames(context, [
    { key: 'sender.rpc', path: ['rpc'], items: rpc },
    { key: 'sender.relays', path: ['relays'], items: relays },
  ]),
)

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
