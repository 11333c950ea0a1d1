import { crc32 } from 'node:zlib'
import pg from 'pg'
import type { Clock } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import type { Logger } from '../telemetry/logger.ts'
import { closePostgres } from './postgres-close.ts'
import { postgresError } from './postgres-error.ts'
import { startPostgresListener } from './postgres-listener.ts'
import { parsePostgresUrl, printPostgresLocation, tlsOptions } from './postgres-url.ts'
import {
  CommitInDoubt,
  LOCK_WAIT_MS,
  type SqlDatabase,
  type SqlReader,
  type SqlRow,
  type SqlValue,
  type SqlWriter,
} from './sql.ts'

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
/** The timeout of BEGIN: a reachable server responds at once, a connection that died silently does not. */
const BEGIN_TIMEOUT_MS = 5000
/** The timeout of ROLLBACK. */
const ROLLBACK_TIMEOUT_MS = 1000
/** A writer that stops in the middle of its change (a stopped process, a lost machine) holds the lock at most this long. */
const IDLE_IN_CHANGE_MS = 30_000
/** How long a counting transaction waits for a row that another one updates. */
const COUNT_WAIT_MS = 1000
/** In case a notification is lost with its connection. */
const POLL_MS = 500
/** Rows fetched per round trip. */
const PAGE_ROWS = 500
/** First half of the advisory lock's key: the letters SLUI. The second half distinguishes schemas. */
const LOCK_SPACE = 0x534c5549
/** Type number of BIGINT in the server's catalogue; the driver would return it as text. */
const BIGINT_OID = 20

const READ_ONLY = ['BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY']

const TYPES = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === BIGINT_OID ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

export async function openPostgres(options: PostgresOptions, deps: PostgresDeps): Promise<SqlDatabase> {
  const { clock } = deps
  const { schema = DEFAULT_SCHEMA, lockWaitMs = LOCK_WAIT_MS, password } = options
  if (!/^[a-z_][a-z0-9_]{0,40}$/.test(schema)) {
    throw new ServiceError('config-invalid', `"${schema}" is not a schema name: use a-z, 0-9 and underscore`)
  }
  const server = parsePostgresUrl(options.url)
  const position = {
    name: printPostgresLocation(server),
    restoreAdvice: `Restore the schema "${schema}" of ${printPostgresLocation(server)} from a backup (pg_restore, or sluice restore BACKUP into a new database), then run: sluice doctor`,
  }
  const config: pg.ClientConfig = {
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
  const channel = `sluice_${schema}`
  const lockKey = crc32(schema) | 0

  const pool = new pg.Pool({ ...config, max: CONNECTIONS_MAX })
  // A lost connection needs no handler: a running query fails, and the next use opens another connection.
  pool.on('error', () => {})
  const connected = new Set<pg.ClientBase>()
  pool.on('connect', (client) => {
    client.on('error', () => {})
    connected.add(client)
  })
  pool.on('remove', (client) => void connected.delete(client))

  async function translated<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw postgresError(error, position)
    }
  }

  async function query(on: pg.Pool | pg.PoolClient, sql: string, values: readonly SqlValue[] = []): Promise<SqlRow[]> {
    const statement = { text: numbered(sql), values: [...values], rowMode: 'array' as const }
    return (await translated(() => on.query<SqlValue[]>(statement))).rows
  }

  const reader = (on: pg.Pool | pg.PoolClient): SqlReader => ({
    isRemote: true,
    rows: (sql, values) => query(on, sql, values),
    pages: (sql, values) => (on instanceof pg.Pool ? pagesOfPool(sql, values) : pagesOf(on, sql, values)),
    hasTable: async (name) =>
      (await query(on, 'SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = ?', [schema, name])).length > 0,
  })

  let cursors = 0
  async function* pagesOf(on: pg.PoolClient, sql: string, values: readonly SqlValue[] = []): AsyncGenerator<SqlRow[]> {
    const cursor = `pages_${++cursors}`
    await query(on, `DECLARE ${cursor} NO SCROLL CURSOR FOR ${sql}`, values)
    for (;;) {
      const page = await query(on, `FETCH ${PAGE_ROWS} FROM ${cursor}`)
      const { length } = page
      if (length > 0) yield page
      // The driver's results reference each other; an emptied one retains nothing until the next full collection.
      page.length = 0
      if (length < PAGE_ROWS) break
    }
    await query(on, `CLOSE ${cursor}`)
  }

  async function* pagesOfPool(sql: string, values?: readonly SqlValue[]): AsyncGenerator<SqlRow[]> {
    await using opened = await openTransaction(READ_ONLY)
    yield* pagesOf(opened.client, sql, values)
  }

  const writer = (on: pg.PoolClient): SqlWriter => ({
    ...reader(on),
    run: async (sql, values) => void (await query(on, sql, values)),
  })

  /** A transaction on a connection of its own; leaving it without a commit rolls it back. */
  async function openTransaction(
    begin: readonly string[],
    beginTimeoutMs = BEGIN_TIMEOUT_MS,
  ): Promise<AsyncDisposable & { client: pg.PoolClient; commit(): Promise<void> }> {
    const client = await translated(() => pool.connect())
    let ended = false
    const transaction = {
      client,
      async commit() {
        const { command } = await client.query('COMMIT').catch((error: unknown) => {
          throw new CommitInDoubt(position.name, postgresError(error, position))
        })
        ended = true
        // The server responds with ROLLBACK when a statement failed before: nothing was committed.
        if (command !== 'COMMIT')
          throw new ServiceError('store-unavailable', `${position.name} did not commit the change`)
      },
      async [Symbol.asyncDispose]() {
        const yes = () => true
        const no = () => false
        ended ||= await client.query(limited('ROLLBACK', ROLLBACK_TIMEOUT_MS)).then(yes, no)
        // A connection that cannot roll back is closed; the server then rolls back.
        client.release(!ended)
      },
    }
    try {
      // One message for all: otherwise each would be a round trip.
      await translated(() => client.query(limited(begin.join('; '), beginTimeoutMs)))
      return transaction
    } catch (error) {
      await transaction[Symbol.asyncDispose]()
      throw error
    }
  }

  const database: SqlDatabase = {
    ...position,
    ...reader(pool),
    async read(work) {
      await using view = await openTransaction(READ_ONLY)
      return await work(reader(view.client))
    },

    async change(work) {
      await using tx = await openTransaction(
        [
          'BEGIN',
          `SET LOCAL lock_timeout = ${lockWaitMs}`,
          `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_CHANGE_MS}`,
          'SET LOCAL synchronous_commit = on',
          // Held until the commit is visible, so that revisions are in the order of commits.
          `SELECT pg_advisory_xact_lock(${LOCK_SPACE}, ${lockKey})`,
        ],
        lockWaitMs + BEGIN_TIMEOUT_MS,
      )
      const result = await work(writer(tx.client))
      await query(tx.client, `NOTIFY ${channel}`)
      await tx.commit()
      return result
    },

    async count(work, { isDurable } = { isDurable: false }) {
      await using tx = await openTransaction([
        'BEGIN',
        `SET LOCAL lock_timeout = ${COUNT_WAIT_MS}`,
        // Otherwise a disconnected machine would block the others from counting for the same customer.
        `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_CHANGE_MS}`,
        `SET LOCAL synchronous_commit = ${isDurable ? 'on' : 'off'}`,
      ])
      await work(writer(tx.client))
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

async function ensureSchema(database: SqlDatabase, schema: string): Promise<void> {
  // Checked first: where the schema exists already, the user may lack the right to create one.
  const isThere = async (on: SqlReader) =>
    (await on.rows('SELECT 1 FROM pg_namespace WHERE nspname = ?', [schema])).length > 0
  if (await isThere(database)) return
  await database.change(async (tx) => {
    if (!(await isThere(tx))) await tx.run(`CREATE SCHEMA ${schema}`)
  })
}

/** A statement with its own timeout; the driver supports it but its types do not. */
function limited(text: string, timeoutMs: number): pg.QueryConfig {
  return { text, query_timeout: timeoutMs } as pg.QueryConfig
}

/** Replaces `?` with `$1`, `$2` …. Sluice's statements have no `?` inside quotes. */
function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}
