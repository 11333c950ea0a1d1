import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import type { SqlRow, SqlValue, SqlWriter } from './sql.ts'
import { type SqliteLocation, sqliteError } from './sqlite-error.ts'

/** Rows read at once, before the event loop runs other work. */
const PAGE_ROWS = 200
/** Statements kept prepared per connection; beyond it they are prepared each time. */
const STATEMENTS_MAX = 256
/** Pages kept in memory while the whole file is checked; looking up every index entry would read most pages many times. */
const CHECK_CACHE_KIB = 65_536

/** Changes are on the disk when their commit returns; counts reach it with the next checkpoint. */
const SETTINGS = {
  change: 'PRAGMA synchronous = FULL',
  count: 'PRAGMA synchronous = NORMAL',
  read: 'PRAGMA query_only = ON',
  check: `PRAGMA query_only = ON; PRAGMA cache_size = -${CHECK_CACHE_KIB}`,
} as const

/** Returns a row when the table exists. */
export const TABLE_NAMED = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"

export const TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"

/** One connection to a file. It never waits for a lock: such a call fails with `store-locked`, and the caller retries. */
export class SqliteConnection implements SqlWriter, Disposable {
  readonly isRemote = false
  readonly #position: SqliteLocation
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(position: SqliteLocation, purpose: keyof typeof SETTINGS) {
    this.#position = position
    this.#database = this.#translated(() => new DatabaseSync(position.file, { timeout: 0 }))
    try {
      this.execute(SETTINGS[purpose])
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  async rows(sql: string, values: readonly SqlValue[] = []): Promise<SqlRow[]> {
    return this.query(sql, values)
  }

  async *pages(sql: string, values: readonly SqlValue[] = []): AsyncGenerator<SqlRow[]> {
    // A separate statement: the cached one may run again while this one is partly read.
    const rows = this.#translated(() => this.#newStatement(sql).iterate(...values)) as unknown as Iterator<SqlRow>
    try {
      for (;;) {
        const page: SqlRow[] = []
        this.#translated(() => {
          while (page.length < PAGE_ROWS) {
            const { value, done } = rows.next()
            if (done === true) return
            page.push(value)
          }
        })
        if (page.length > 0) yield page
        if (page.length < PAGE_ROWS) return
      }
    } finally {
      // A statement that is not read to its end keeps the connection at the state that it reads, also after the transaction: no later one could write.
      rows.return?.()
    }
  }

  async run(sql: string, values: readonly SqlValue[] = []): Promise<void> {
    this.#translated(() => this.#prepare(sql).run(...values))
  }

  async hasTable(name: string): Promise<boolean> {
    return this.query(TABLE_NAMED, [name]).length > 0
  }

  query(sql: string, values: readonly SqlValue[] = []): SqlRow[] {
    return this.#translated(() => this.#prepare(sql).all(...values) as unknown as SqlRow[])
  }

  execute(sql: string): void {
    this.#translated(() => this.#database.exec(sql))
  }

  /**
   * A checksum of the schema, which no row check covers: a damaged schema makes statements fail as if they were wrong. It is stored in the file's
   * `user_version`.
   */
  describesItself(): boolean {
    return this.query('PRAGMA user_version')[0]?.[0] === this.#schemaCheck()
  }

  /** Stores the checksum of the schema, inside the transaction that changed it. */
  describeItself(): void {
    if (!this.describesItself()) this.execute(`PRAGMA user_version = ${this.#schemaCheck()}`)
  }

  #schemaCheck(): number {
    // Tables of the engine itself, such as statistics, may change.
    const ours = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    // `user_version` is a signed 32-bit number.
    return crc32(JSON.stringify(this.query(ours))) | 0
  }

  /** Ends a transaction that was not committed, if one is open: after a failed commit the engine may have ended it itself. */
  rollBack(): void {
    if (this.#database.isTransaction) this.execute('ROLLBACK')
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#newStatement(sql)
    if (this.#statements.size < STATEMENTS_MAX) this.#statements.set(sql, statement)
    return statement
  }

  #newStatement(sql: string): StatementSync {
    const statement = this.#database.prepare(sql)
    statement.setReturnArrays(true)
    return statement
  }

  #translated<T>(call: () => T): T {
    try {
      return call()
    } catch (error) {
      throw sqliteError(error, this.#position)
    }
  }

  [Symbol.dispose](): void {
    this.#statements.clear()
    this.#database.close()
  }
}
