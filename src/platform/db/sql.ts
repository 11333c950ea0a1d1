/**
 * What the house asks of a SQL database. Statements are written in the common subset of SQLite and PostgreSQL with `?` for values; rows come back
 * as arrays in the order of the columns asked for. Everything an engine does in its own way (locking, telling of changes, checking itself, naming
 * its errors) is behind these few calls. All of them fail with the same `ServiceError` codes: `store-locked`, `store-unavailable`,
 * `store-corrupt`, `already-exists`, `disk-full`, `state-unwritable`.
 */

import { ServiceError } from '../../core/error.ts'

/** How long a change waits for another writer, unless told otherwise. */
export const LOCK_WAIT_MS = 5000

/** Whole numbers stay below 2^53. */
export type SqlValue = string | number | null

export type SqlRow = readonly SqlValue[]

export interface SqlReader {
  rows(sql: string, values?: readonly SqlValue[]): Promise<SqlRow[]>
  /**
   * The same rows a page at a time, all of one state, for answers that would fill the memory or hold up the event loop. A page is the caller's
   * until it asks for the next.
   */
  pages(sql: string, values?: readonly SqlValue[]): AsyncIterable<SqlRow[]>
  hasTable(name: string): Promise<boolean>
}

export interface SqlWriter extends SqlReader {
  run(sql: string, values?: readonly SqlValue[]): Promise<void>
}

export interface SqlDatabase extends SqlReader, AsyncDisposable {
  /** How the database is named to a person; never with a password. */
  readonly name: string
  /** What a person does when the database is damaged: a sentence, with the command where there is one. */
  readonly restoreAdvice: string

  /** Runs `work` on one unchanging state: everything it reads was committed together. */
  read<T>(work: (view: SqlReader) => Promise<T>): Promise<T>

  /**
   * Runs `work` as the only writer among all processes and commits it durably, or leaves nothing behind when it throws. Fails with `store-locked`
   * when another writer does not make room within the lock wait.
   */
  change<T>(work: (tx: SqlWriter) => Promise<T>): Promise<T>

  /**
   * A small write beside the changes, for counting: it survives the end of the process but the last of it may be lost with the machine, and it
   * fails with `store-locked` rather than wait for a writer. With `CommitInDoubt` it fails when a server did not say whether it has committed;
   * after any other error it has not.
   */
  count(work: (tx: SqlWriter) => Promise<void>): Promise<void>

  /** Calls back within half a second of any commit by anyone. May call without need. */
  watch(onStir: () => void): Promise<AsyncDisposable>

  /** What the engine itself finds wrong with its files, at most a few sentences. */
  damage(): Promise<string[]>
}

/** The answer to a commit was lost on the way. Only the server knows whether it took place, and what was to be added must not be added twice. */
export class CommitInDoubt extends ServiceError {
  /** Asks the server; rejects as long as it cannot be asked or has not decided. */
  readonly wasCommitted: () => Promise<boolean>

  constructor(store: string, wasCommitted: () => Promise<boolean>, cause: unknown) {
    super('store-unavailable', `${store} did not answer a commit`, { fields: { store }, cause })
    this.wasCommitted = wasCommitted
  }
}
