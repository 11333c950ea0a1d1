import { z } from 'zod'
import { listenerOption } from '../contract/listener-option.ts'

const MIB = 1024 * 1024

export const indexerOptions = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether the indexer runs in this process.'),
  ...listenerOption('127.0.0.1:8123'),
  includeVotes: z
    .boolean()
    .default(false)
    .describe('Keeps vote transactions; without them there are about 60 % fewer rows.'),
  includeLogs: z.boolean().default(false).describe('Keeps the log lines of transactions.'),
  includeAccounts: z
    .boolean()
    .default(true)
    .describe('Keeps the latest state of accounts that change, from the block stream.'),
  store: z
    .strictObject({
      memoryBytes: z
        .int()
        .min(128 * MIB)
        .default(1024 * MIB)
        .describe('What the embedded database may use, for customers and ingest together.'),
      residentBytesMax: z
        .int()
        .min(256 * MIB)
        .default(2048 * MIB)
        .describe('Memory at which its process is ended and started again; well above memoryBytes.'),
      threads: z.int().min(1).max(64).default(2).describe('Threads of the embedded database.'),
    })
    .prefault({})
    .describe('The embedded database, in a process of its own.'),
  ingest: z
    .strictObject({
      batchBlocks: z.int().min(1).max(256).default(8).describe('Blocks written in one transaction.'),
      batchMs: z
        .int()
        .min(10)
        .max(10_000)
        .default(1000)
        .describe('A smaller batch is written when its first block has waited so long.'),
      heldBlocksMax: z.int().min(8).max(10_000).default(256).describe('Blocks kept while one before them is missing.'),
      fetchParallel: z.int().min(1).max(64).default(4).describe('Blocks asked for at a time when a gap is filled.'),
    })
    .prefault({})
    .describe('From the block stream into the tables.'),
  query: z
    .strictObject({
      secondsMax: z.number().min(0.1).max(3600).default(30).describe('How long one query may run.'),
      rowsMax: z
        .int()
        .min(1)
        .max(100_000_000)
        .default(1_000_000)
        .describe('Rows in one answer; more is an error, never a shorter answer.'),
      bytesMax: z
        .int()
        .min(1024)
        .max(1024 * MIB)
        .default(64 * MIB)
        .describe('Bytes in one answer.'),
      concurrentPerSubscription: z.int().min(1).max(64).default(4).describe('Queries of one subscription at a time.'),
      concurrent: z.int().min(1).max(16).default(8).describe('Queries of all subscriptions at a time.'),
    })
    .prefault({})
    .describe('What a query may cost.'),
})

export type IndexerOptions = z.output<typeof indexerOptions>
export type IndexerOptionsInput = z.input<typeof indexerOptions>

export function parseIndexerOptions(input: IndexerOptionsInput = {}): IndexerOptions {
  return indexerOptions.parse(input)
}
