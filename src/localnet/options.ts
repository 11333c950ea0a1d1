import { z } from 'zod'

const MIB = 1024 * 1024

/** Commitment as distance from the newest block. The compressed mode is for tests that cannot wait 32 slots. */
const commitment = z.strictObject({
  confirmedSlots: z.int().min(0).max(31).default(1),
  finalizedSlots: z.int().min(0).max(150).default(31),
})

const listen = (port: number) =>
  z.strictObject({ host: z.string().default('127.0.0.1'), port: z.int().min(0).max(65535).default(port) })

export const localnetOptions = z.strictObject({
  /** Folder of keys, snapshot and ledger; without it the chain lives in memory and ends with the process. */
  stateDir: z.string().optional(),
  slotMs: z.int().min(50).max(10_000).default(400),
  slotsPerEpoch: z.int().min(32).max(432_000).default(432_000),
  ticksPerSlot: z.int().min(1).max(64).default(64),
  commitment: commitment.prefault({}),
  /** Folder of account JSON files and `.so` programs to put into the genesis. */
  accountsDir: z.string().optional(),
  rpc: listen(8899).prefault({}),
  ws: listen(8900).prefault({}),
  grpc: listen(10_000).prefault({}),
  shreds: z
    .strictObject({
      /** `IP:PORT` that every block is sent to as shreds. */
      to: z
        .string()
        .regex(/^(\d{1,3}\.){3}\d{1,3}:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/, 'give IP:PORT')
        .optional(),
    })
    .prefault({}),
  traffic: z
    .strictObject({
      enabled: z.boolean().default(true),
      tps: z.number().min(0).max(1000).default(5),
    })
    .prefault({}),
  limits: z
    .strictObject({
      /** Transactions and simulations waiting for the engine; more are refused. */
      pendingMax: z.int().min(1).default(10_000),
      /** History kept in memory and on disk; the oldest blocks leave first. */
      ledgerBytesMax: z
        .int()
        .min(MIB)
        .default(64 * MIB),
      ledgerBlocksMax: z.int().min(512).default(100_000),
    })
    .prefault({}),
})

export type LocalnetOptions = z.output<typeof localnetOptions>
export type LocalnetOptionsInput = z.input<typeof localnetOptions>

export function parseLocalnetOptions(input: LocalnetOptionsInput = {}): LocalnetOptions {
  return localnetOptions.parse(input)
}
