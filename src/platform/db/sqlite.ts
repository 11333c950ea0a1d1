import { mkdir, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import { isServiceError, messageOf, ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { syncPath } from '../files/atomic.ts'
import { linkOrMove } from '../files/link.ts'
import { delay } from '../process/clock.ts'
import { LOCK_WAIT_MS, type SqlDatabase, type SqlWriter } from './sql.ts'
import { SqliteConnection, TABLE_NAMED, TABLE_NAMES } from './sqlite-connection.ts'
import { sqliteError } from './sqlite-error.ts'
import { APPLICATION_ID, checkHeader, corrupt, positionOf } from './sqlite-file.ts'

export type SqliteOptions = {
  readonly file: string
  /** How long a change waits for another writer. */
  readonly lockWaitMs?: number | undefined
}

export type SqliteDeps = { readonly clock: Clock }

/** Pause between two attempts to get the write lock. Short, so that a busy writer in another process does not starve this one. */
const LOCK_RETRY_MS = 2
const WATCH_MS = 100
const DAMAGE_LINES_MAX = 5

/**
 * Opens an existing database file. A missing, empty or foreign file is an error: only `createSqliteFile` creates files, atomically, so an empty file is
 * a damaged store and never a new one.
 */
export async function openSqlite(options: SqliteOptions, { clock }: SqliteDeps): Promise<SqlDatabase> {
  const { file, lockWaitMs = LOCK_WAIT_MS } = options
  const position = positionOf(file)
  await checkHeader(position)

  const opened = new Map<string, SqliteConnection>()
  function connection(purpose: 'change' | 'count' | 'read'): SqliteConnection {
    const found = opened.get(purpose) ?? new SqliteConnection(position, purpose)
    opened.set(purpose, found)
    return found
  }

  /** A connection has one transaction at a time, as the file has one writer. */
  const busy = new Set<string>()
  function begin(purpose: 'change' | 'count'): SqliteConnection {
    if (busy.has(purpose)) throw new ServiceError('store-locked', `another ${purpose} of ${file} is under way`)
    const writer = connection(purpose)
    writer.execute('BEGIN IMMEDIATE')
    busy.add(purpose)
    return writer
  }

  async function commit<T>(purpose: 'change' | 'count', writer: SqliteConnection, work: (tx: SqlWriter) => Promise<T>) {
    try {
      const result = await work(writer)
      if (purpose === 'change') writer.describeItself()
      writer.execute('COMMIT')
      return result
    } finally {
      busy.delete(purpose)
      writer.rollBack()
    }
  }

  /** Retries while another connection writes or recovers, without blocking the event loop. */
  async function patiently<T>(attempt: () => T): Promise<T> {
    const untilMs = clock.monotonicMs() + lockWaitMs
    for (;;) {
      try {
        return attempt()
      } catch (error) {
        if (!isServiceError(error, 'store-locked') || clock.monotonicMs() >= untilMs) throw error
      }
      await delay(clock, LOCK_RETRY_MS)
    }
  }

  /** A connection that sees the state of this moment until it is closed. */
  async function openView(): Promise<SqliteConnection> {
    const view = new SqliteConnection(position, 'read')
    try {
      view.execute('BEGIN')
      // The state is chosen by the first read, not by BEGIN.
      await patiently(() => view.query('SELECT 1 FROM sqlite_master LIMIT 1'))
      return view
    } catch (error) {
      view[Symbol.dispose]()
      throw error
    }
  }

  try {
    const isSound = await patiently(() => connection('read').describesItself())
    if (!isSound) throw corrupt(position, 'the description of its tables is damaged')
  } catch (error) {
    opened.get('read')?.[Symbol.dispose]()
    // These statements are valid for every database, so an untranslated error is caused by the file.
    throw isServiceError(error) ? error : corrupt(position, messageOf(error))
  }

  return {
    name: file,
    restoreAdvice: position.restoreAdvice,
    rows: (sql, values) => patiently(() => connection('read').query(sql, values)),
    isRemote: false,
    hasTable: async (name) => (await patiently(() => connection('read').query(TABLE_NAMED, [name]))).length > 0,
    async *pages(sql, values) {
      using view = await openView()
      yield* view.pages(sql, values)
    },
    async read(work) {
      using view = await openView()
      return await work(view)
    },

    change: async (work) => commit('change', await patiently(() => begin('change')), work),
    async count(work, { isDurable } = { isDurable: false }) {
      if (!isDurable) return commit('count', begin('count'), work)
      // The connection of changes syncs its commits.
      return commit('change', begin('change'), work)
    },

    async watch(onStir) {
      const watcher = new SqliteConnection(position, 'read')
      // Cheap: the engine compares a counter in shared memory. It moves with the commits of all other connections, also of this process.
      const readVersion = () => watcher.query('PRAGMA data_version')[0]?.[0]
      let version = await patiently(readVersion)
      const timer = clock.setRepeating(WATCH_MS, () => {
        try {
          const versionNow = readVersion()
          if (versionNow === version) return
          version = versionNow
        } catch {
          // The listener reads the file too, gets the same error and reports it.
        }
        onStir()
      })
      return {
        async [Symbol.asyncDispose]() {
          timer.cancel()
          watcher[Symbol.dispose]()
        },
      }
    },

    async damage(except = []) {
      using checker = new SqliteConnection(position, 'check')
      // Not quick_check: that one does not compare indexes with their tables, and names are looked up through indexes.
      const check = async (what: string | number) => {
        const lines = await patiently(() => checker.query(`PRAGMA integrity_check(${what})`))
        return lines.map(([line]) => String(line)).filter((line) => line !== 'ok')
      }
      if (except.length === 0) return check(DAMAGE_LINES_MAX)
      const tables = (await patiently(() => checker.query(TABLE_NAMES))).map(([name]) => name as string)
      const found: string[] = []
      for (const table of ['sqlite_schema', ...tables])
        if (found.length < DAMAGE_LINES_MAX && !except.includes(table)) found.push(...(await check(`"${table}"`)))
      return found.slice(0, DAMAGE_LINES_MAX)
    },

    async [Symbol.asyncDispose]() {
      for (const each of opened.values()) each[Symbol.dispose]()
      opened.clear()
    },
  }
}

/**
 * Creates a database file: `prepare` fills it under a temporary name, and it is linked when it is complete and on the disk. A file that another process
 * created meanwhile stays.
 */
export async function createSqliteFile(
  options: SqliteOptions,
  deps: SqliteDeps & { readonly random: Random },
  prepare: (database: SqlDatabase) => Promise<void>,
): Promise<void> {
  const { file } = options
  const draft = `${file}.new-${Buffer.from(deps.random.bytes(6)).toString('hex')}`
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await (await open(draft, 'wx', 0o600)).close()
    {
      using connection = new SqliteConnection(positionOf(draft), 'change')
      connection.execute(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA journal_mode = WAL`)
      connection.describeItself()
    }
    {
      await using database = await openSqlite({ ...options, file: draft }, deps)
      await prepare(database)
    }
    await syncPath(draft)
    await linkOrMove(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    await syncPath(dirname(file))
  } catch (error) {
    throw isServiceError(error) ? error : sqliteError(error, positionOf(file))
  } finally {
    for (const ending of ['', '-wal', '-shm']) await rm(draft + ending, { force: true })
  }
}
