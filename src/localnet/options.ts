import { z } from 'zod'
import { integer, section } from '../contract/option-fields.ts'

const MIB = 1024 * 1024

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
  slotMs: integer(50, 10_000).default(400).describe('Length of a slot in milliseconds.'),
  slotsPerEpoch: integer(32, 432_000).default(432_000).describe('Slots of an epoch.'),
  ticksPerSlot: integer(1, 64).default(64).describe('Ticks (empty entries) at the end of a block.'),
  commitment: z
    .strictObject({
      confirmedSlots: integer(0, 31).default(1).describe('How far `confirmed` is behind the newest block.'),
      finalizedSlots: integer(0, 150).default(31).describe('How far `finalized` is behind the newest block.'),
    })
    .refine((value) => value.confirmedSlots <= value.finalizedSlots, 'confirmed cannot be behind finalized')
    .prefault({})
    .describe('Commitment levels; small numbers suit tests that cannot wait 32 slots.'),
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
  votes: section('Votes of the validator: one transaction in each block, as on a test validator.', {
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
      .default(32 * MIB)
      .describe('Ledger size in bytes; the oldest blocks are removed first.'),
    ledgerBlocksMax: z.int().min(512).default(100_000).describe('Ledger size in blocks.'),
  }),
})

export type LocalnetOptions = z.output<typeof localnetOptions>
export type LocalnetOptionsInput = z.input<typeof localnetOptions>

export function parseLocalnetOptions(input: LocalnetOptionsInput = {}): LocalnetOptions {
  return localnetOptions.parse(input)
}
