import { z } from 'zod'
import { listenerOption, originsOption } from '../contract/listener-option.ts'
import { integer, section } from '../contract/option-fields.ts'
import { publicUrlOption } from '../contract/public-url-option.ts'
import { networkOption } from '../platform/config/network-option.ts'
import { isSecretRef, SECRET_REF_RULE } from '../platform/config/secret-ref.ts'
import { parseRemoteAddress } from '../platform/net/pinned-address.ts'

const MIB = 1024 * 1024

const clickHouseUser = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'a user name has letters, digits and underscores')

const clickhouse = z.strictObject({
  url: z
    .string()
    .refine(
      (text) => parseRemoteAddress(text, ['http:', 'https:']) !== undefined,
      'give a URL such as http://10.0.0.1:8123, without credentials and without a query',
    )
    .describe("The server's HTTP interface."),
  user: clickHouseUser.describe("The gateway's own account: it creates the tables, writes, and kills queries."),
  password: z.string().refine(isSecretRef, SECRET_REF_RULE).describe('Reference to its password.'),
  database: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,31}$/, 'a database name has a-z, 0-9 and underscores')
    .default('solana')
    .describe('Database of the views that customers see; the tables are in a second one with the suffix _base.'),
  accounts: z
    .strictObject({
      user: clickHouseUser.describe(
        'An account that may create roles, profiles, quotas and users, list users, grant SELECT on that database and kill queries.',
      ),
      password: z.string().refine(isSecretRef, SECRET_REF_RULE).describe('Reference to its password.'),
      gateways: z
        .array(z.string().regex(/^[0-9a-fA-F.:]{2,45}(\/[0-9]{1,3})?$/, 'an address or a network'))
        .min(1)
        .max(64)
        .default(['127.0.0.1', '::1'])
        .describe("Addresses of the gateways: customers' accounts can log in from there only."),
      memoryBytesMax: z
        .int()
        .min(MIB)
        .default(4096 * MIB)
        .describe('Memory of one query at the server.'),
      readRowsMax: z.int().min(1).default(5_000_000_000).describe('Most rows that one query may read.'),
      queriesPerHour: z
        .int()
        .min(1)
        .default(5000)
        .describe('Most queries of one account in an hour, counted by the server.'),
    })
    .optional()
    .describe("Creates customers' accounts on servers from 25.8 on; without it the operator creates them."),
})

export const indexerOptions = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether the indexer runs in this process.'),
    ...listenerOption('127.0.0.1:8123'),
    ...publicUrlOption('http'),
    trustedProxies: z
      .array(networkOption)
      .max(64)
      .default([])
      .describe(
        'Addresses or networks of proxies whose x-forwarded-for header is trusted. Behind a proxy that is not listed the limits by address do not apply.',
      ),
    corsOrigins: originsOption('Origins of web pages that may query. Default: none, so no CORS header is sent.'),
    tokenInPassword: z
      .boolean()
      .default(false)
      .describe(
        'For tools that cannot set headers: also reads the token from a password of the form TOKEN:PASSWORD, on TLS and loopback connections.',
      ),
    includeVotes: z
      .boolean()
      .default(false)
      .describe('Stores vote transactions; without them there are about 60 % fewer rows.'),
    includeLogs: z.boolean().default(false).describe('Stores the log lines of transactions.'),
    includeAccounts: z
      .boolean()
      .default(true)
      .describe('Stores the latest state of accounts that change, from the block stream.'),
    engine: z
      .enum(['duckdb', 'clickhouse'])
      .default('duckdb')
      .describe("Database of the tables: the embedded one, or the operator's own ClickHouse."),
    clickhouse: clickhouse.optional().describe('The operator\'s ClickHouse, for engine = "clickhouse".'),
    store: section('The embedded database, which runs in a child process.', {
      memoryBytes: z
        .int()
        .min(128 * MIB)
        .default(512 * MIB)
        .describe('Memory of the embedded database, for customers and ingest together.'),
      residentBytesMax: z
        .int()
        .min(256 * MIB)
        .default(1024 * MIB)
        .describe('Resident memory at which its process is ended and restarted; well above memoryBytes.'),
      threads: integer(1, 64)
        .default(2)
        .describe('Threads of the embedded database that run queries; ingest has a separate one.'),
    }),
    ingest: section('Ingest from the block stream into the tables.', {
      enabled: z
        .boolean()
        .default(true)
        .describe(
          'Whether this process writes; false where another process writes into the same ClickHouse. A database has one writer.',
        ),
      batchBlocks: integer(1, 256).default(8).describe('Blocks written in one transaction.'),
      batchMs: integer(10, 10_000)
        .default(1000)
        .describe('A smaller batch is written when its first block has waited this long.'),
      heldBlocksMax: integer(8, 10_000).default(256).describe('Most blocks held while an earlier one is missing.'),
      fetchParallel: integer(1, 64).default(4).describe('Blocks fetched concurrently when a gap is filled.'),
    }),
    query: section('Limits of queries.', {
      secondsMax: z.number().min(0.1).max(3600).default(30).describe('Time limit of one query.'),
      rowsMax: integer(1, 100_000_000)
        .default(1_000_000)
        .describe('Most rows in one result; more is an error, never a truncated result.'),
      bytesMax: integer(1024, 64 * 1024 * MIB)
        .default(64 * MIB)
        .describe('Most bytes in one result; more is an error. ClickHouse counts the bytes of the columns in memory.'),
      concurrentPerSubscription: integer(1, 64)
        .default(4)
        .describe('Concurrent queries of one subscription; each counts until its result is read. More are refused.'),
      concurrent: integer(1, 16)
        .default(8)
        .describe(
          'Concurrent queries of all subscriptions, counted likewise. More wait, and subscriptions are served in rotation; one subscription gets at most half.',
        ),
      waitingMax: integer(0, 1024).default(64).describe('Most queries that wait for a permit; more are refused.'),
      waitSecondsMax: z
        .number()
        .min(0)
        .max(600)
        .default(30)
        .describe('Time that a query waits for a permit before it is refused.'),
      readSecondsMax: z
        .number()
        .min(1)
        .max(3600)
        .default(300)
        .describe(
          'Time for which a result may wait for its client altogether; then the connection is closed. The time that the query takes does not count.',
        ),
      sessionsPerSubscription: integer(1, 1024)
        .default(64)
        .describe('Sessions (session_id) of one subscription; more are refused until one has ended.'),
      sessionsMax: integer(1, 100_000).default(4096).describe('Sessions of all subscriptions.'),
      heldBytesMax: z
        .int()
        .min(8 * MIB)
        .default(128 * MIB)
        .describe(
          'Most bytes of results that are not read yet, in the process of the embedded database: about 4 MiB of each result, or all of it with wait_end_of_query.',
        ),
      heldBytesPerSubscription: z
        .int()
        .min(8 * MIB)
        .default(64 * MIB)
        .describe('The same for one subscription.'),
    }),
  })
  .refine(
    ({ engine, clickhouse }) => engine === 'duckdb' || clickhouse !== undefined,
    'engine = "clickhouse" needs the section indexer.clickhouse',
  )
  .refine(
    ({ engine, ingest }) => engine === 'clickhouse' || ingest.enabled,
    'ingest.enabled = false needs engine = "clickhouse": no other process can write into the embedded database',
  )
  .refine(({ engine, store }) => engine === 'clickhouse' || store.residentBytesMax > store.memoryBytes, {
    path: ['store', 'residentBytesMax'],
    message:
      'must be above indexer.store.memoryBytes, better by half: the process of a query within its memory would be ended',
  })

export type IndexerOptions = z.output<typeof indexerOptions>
export type IndexerOptionsInput = z.input<typeof indexerOptions>

export function parseIndexerOptions(input: IndexerOptionsInput = {}): IndexerOptions {
  return indexerOptions.parse(input)
}
