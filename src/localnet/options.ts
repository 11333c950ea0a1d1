import { z } from 'zod'
import { integer, section } from '../contract/option-fields.ts'

const MIB = 1024 * 1024

/** How the validators agree: by votes in blocks, or by certificates outside of them (SIMD-0326). */
export const CONSENSUS_NAMES = ['tower', 'alpenglow'] as const
export type Consensus = (typeof CONSENSUS_NAMES)[number]

export const SLOT_MS_MIN = 50
export const SLOT_MS_MAX = 10_000

const listen = (what: string, port: number) =>
  section(what, {
    host: z.string().min(1).default('127.0.0.1').describe('Address to listen on.'),
    port: integer(0, 65_535).default(port).describe('Port; 0 lets the system choose.'),
  })

/** The embedded chain: slots, storage and listeners. */
export const localnetOptions = z.strictObject({
  stateDir: z
    .string()
    .min(1)
    .optional()
    .describe('Folder of keys, accounts and ledger; without it the chain lives in memory and ends with the process.'),
  slotMs: integer(SLOT_MS_MIN, SLOT_MS_MAX).default(400).describe('Length of a slot in milliseconds.'),
  consensus: z
    .enum(CONSENSUS_NAMES)
    .default('tower')
    .describe(
      'tower: votes and ticks in blocks, finalized after `commitment.finalizedSlots`. alpenglow: neither; blocks have footers, slots may have several banks, and a block is finalized within one slot.',
    ),
  candidateBanksPercent: integer(0, 100)
    .default(20)
    .describe('With alpenglow: the share of slots that have two or three banks, of which one survives.'),
  slotsPerEpoch: integer(32, 432_000).default(432_000).describe('Slots of an epoch.'),
  ticksPerSlot: integer(1, 64).default(64).describe('Ticks (empty entries) at the end of a block of the tower.'),
  commitment: z
    .strictObject({
      confirmedSlots: integer(0, 31).default(1).describe('How far `confirmed` is behind the newest block.'),
      finalizedSlots: integer(0, 150).default(31).describe('How far `finalized` is behind the newest block.'),
    })
    .refine((value) => value.confirmedSlots <= value.finalizedSlots, 'confirmed cannot be behind finalized')
    .prefault({})
    .describe('Commitment levels of the tower; small numbers suit tests that cannot wait 32 slots.'),
  accountsDir: z
    .string()
    .min(1)
    .optional()
    .describe('Folder of account JSON files and `.so` programs to load at genesis.'),
  rpc: listen('JSON-RPC over HTTP.', 8899),
  ws: listen('PubSub over WebSocket.', 8900),
  grpc: listen('Geyser over gRPC.', 10_000),
  shreds: section('Shreds over UDP.', {
    to: z
      .string()
      .regex(/^(\d{1,3}\.){3}\d{1,3}:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/, 'give IP:PORT')
      .optional()
      .describe('IP:PORT that every block is sent to as shreds.'),
  }),
  traffic: section('Traffic generator: transfers, token transfers, memos, and a failing transaction now and then.', {
    enabled: z.boolean().default(true).describe('Whether the chain generates traffic.'),
    tps: z.number().min(0).max(1000).default(5).describe('Generated transactions per second.'),
  }),
  votes: section('Votes of the validator: one transaction in each block of the tower, as on a test validator.', {
    enabled: z.boolean().default(true).describe('Whether the validator votes.'),
  }),
  ring: section(
    'The simulated EVM chain. It runs where nothing real is configured, or with execution.simulated = true.',
    {
      tps: z.number().min(0).max(50_000).default(100).describe('Transactions per second of the simulated EVM chain.'),
      blockMs: integer(50, 10_000).default(400).describe('Block time of the simulated EVM chain.'),
      lanes: integer(1, 256).default(16).describe('Transactions that execute in parallel.'),
    },
  ),
  limits: section('Limits.', {
    pendingMax: integer(1, 1_000_000)
      .default(10_000)
      .describe('Transactions waiting for the engine; more are refused.'),
    ledgerBytesMax: z
      .int()
      .min(MIB)
      .optional()
      .describe(
        'Ledger size in bytes; the oldest blocks are removed first (default: 16777216, 16 MiB; 8388608, 8 MiB, in `serve`).',
      ),
    ledgerBlocksMax: z.int().min(512).default(100_000).describe('Ledger size in blocks.'),
  }),
})

/** `limits.ledgerBytesMax` where it is not set. */
const LEDGER_BYTES = 16 * MIB
/** The same in `serve`, beside all services: about a quarter of an hour of blocks. */
export const EMBEDDED_LEDGER_BYTES = 8 * MIB

/** The limits of the ledger. */
export function ledgerLimitsOf({ ledgerBytesMax = LEDGER_BYTES, ledgerBlocksMax }: LocalnetOptions['limits']): {
  readonly bytesMax: number
  readonly blocksMax: number
} {
  return { bytesMax: ledgerBytesMax, blocksMax: ledgerBlocksMax }
}

export type LocalnetOptions = z.output<typeof localnetOptions>
export type LocalnetOptionsInput = z.input<typeof localnetOptions>

export function parseLocalnetOptions(input: LocalnetOptionsInput = {}): LocalnetOptions {
  return localnetOptions.parse(input)
}
