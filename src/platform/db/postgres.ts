import { crc32 } from 'node:zlib'
import pg from 'pg'
import type { Clock } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import type { Logger } from '../telemetry/logger.ts'
import { closePostgres } from './postgres-close.ts'
import { startPostgresListener } from './postgres-listener.ts'
import { createPoolReader, createReader, createWriter } from './postgres-reader.ts'
import { openTransaction, READ_ONLY } from './postgres-transaction.ts'
import { type PostgresLocation, parsePostgresUrl, printPostgresLocation, tlsOptions } from './postgres-url.ts'
import { LOCK_WAIT_MS, type SqlDatabase, type SqlReader } from './sql.ts'

export type PostgresOptions = {
  /** `postgres://USER@HOST:PORT/DATABASE`, without a password. */
  readonly url: string
  readonly password?: string | undefined
  /** The schema of the tables; created if missing. */
  readonly schema?: string | undefined
  /** How long a change waits for another writer. */
  readonly lockWaitMs?: number | undefined
}

export type PostgresDeps = { readonly clock: Clock; readonly random: Random; readonly log: Logger }

const DEFAULT_SCHEMA = 'sluice'
const CONNECTIONS_MAX = 4
const CONNECT_TIMEOUT_MS = 5000
/** The timeout of a statement, so that an unresponsive server is noticed. */
const QUERY_TIMEOUT_MS = 30_000
/** A writer that stops in the middle of its change (a stopped process, a lost machine) holds the lock at most this long. */
const IDLE_IN_CHANGE_MS = 30_000
/** How long a counting transaction waits for a row that another one updates. */
const COUNT_WAIT_MS = 1000
/** In case a notification is lost with its connection. */
const POLL_MS = 500
/** First half of the advisory lock's key: the letters SLUI. The second half distinguishes schemas. */
const LOCK_SPACE = 0x534c5549
/** Type number of BIGINT in the server's catalogue; the driver would return it as text. */
const BIGINT_OID = 20

const TYPES = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === BIGINT_OID ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

export async function openPostgres(options: PostgresOptions, deps: PostgresDeps): Promise<SqlDatabase> {
  const { clock } = deps
  const { schema = DEFAULT_SCHEMA, lockWaitMs = LOCK_WAIT_MS } = options
  if (!/^[a-z_][a-z0-9_]{0,40}$/.test(schema)) {
    throw new ServiceError('config-invalid', `"${schema}" is not a schema name: use a-z, 0-9 and underscore`)
  }
  const server = parsePostgresUrl(options.url)
  const position = {
    name: printPostgresLocation(server),
    restoreAdvice: `Restore the schema "${schema}" of ${printPostgresLocation(server)} from a backup (pg_restore, or sluice restore BACKUP into a new database), then run: sluice doctor`,
  }
  const config = await clientConfig(server, schema, options.password)
  const store = { schema, position }
  const channel = `sluice_${schema}`
  const lockKey = crc32(schema) | 0

  const { pool, connected } = openPool(config)
  const database: SqlDatabase = {
    ...position,
    ...createPoolReader(pool, store),
    async read(work) {
      await using view = await openTransaction(pool, READ_ONLY, position)
      return await work(createReader(view.client, store))
    },

    async change(work) {
      const begin = [
        'BEGIN',
        `SET LOCAL lock_timeout = ${lockWaitMs}`,
        `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_CHANGE_MS}`,
        'SET LOCAL synchronous_commit = on',
        // Held until the commit is visible, so that revisions are in the order of commits.
        `SELECT pg_advisory_xact_lock(${LOCK_SPACE}, ${lockKey})`,
      ]
      await using tx = await openTransaction(pool, { begin, lockWaitMs, isWriting: true }, position)
      const writer = createWriter(tx.client, store)
      const result = await work(writer)
      await writer.run(`NOTIFY ${channel}`)
      await tx.commit()
      return result
    },

    async count(work, { isDurable } = { isDurable: false }) {
      const begin = [
        'BEGIN',
        `SET LOCAL lock_timeout = ${COUNT_WAIT_MS}`,
        // Otherwise a disconnected machine would block the others from counting for the same customer.
        `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_CHANGE_MS}`,
        `SET LOCAL synchronous_commit = ${isDurable ? 'on' : 'off'}`,
      ]
      await using tx = await openTransaction(pool, { begin, isWriting: true }, position)
      await work(createWriter(tx.client, store))
      await tx.commit()
    },

    async watch(onStir) {
      const poll = clock.setRepeating(POLL_MS, onStir)
      const listener = await startPostgresListener({ config, channel, onNotice: onStir }, deps)
      return {
        async [Symbol.asyncDispose]() {
          poll.cancel()
          await listener[Symbol.asyncDispose]()
        },
      }
    },

    // The server checks its pages; the rows are checked by the store.
    damage: async () => [],

    async [Symbol.asyncDispose]() {
      await closePostgres(connected, clock, () => pool.end())
    },
  }

  try {
    await ensureSchema(database, schema)
  } catch (error) {
    await database[Symbol.asyncDispose]()
    throw error
  }
  return database
}

async function clientConfig(
  server: PostgresLocation,
  schema: string,
  password: string | undefined,
): Promise<pg.ClientConfig> {
  return {
    host: server.host,
    port: server.port,
    user: server.user,
    database: server.database,
    ssl: await tlsOptions(server),
    ...(password === undefined ? {} : { password }),
    application_name: 'sluice',
    options: `-c search_path=${schema}`,
    types: TYPES,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  }
}

/** The pool, and its open connections. */
function openPool(config: pg.ClientConfig): { readonly pool: pg.Pool; readonly connected: ReadonlySet<pg.ClientBase> } {
  const pool = new pg.Pool({ ...config, max: CONNECTIONS_MAX })
  // A lost connection needs no handler: a running query fails, and the next use opens another connection.
  pool.on('error', () => {})
  const connected = new Set<pg.ClientBase>()
  pool.on('connect', (client) => {
    client.on('error', () => {})
    connected.add(client)
  })
  pool.on('remove', (client) => void connected.delete(client))
  return { pool, connected }
}

async function ensureSchema(database: SqlDatabase, schema: string): Promise<void> {
  // Checked first: where the schema exists already, the user may lack the right to create one.
  const isThere = async (on: SqlReader) =>
    (await on.rows('SELECT 1 FROM pg_namespace WHERE nspname = ?', [schema])).length > 0
  if (await isThere(database)) return
  await database.change(async (tx) => {
    if (!(await isThere(tx))) await tx.run(`CREATE SCHEMA ${schema}`)
  })
}
