/**
 * The SQL database interface. Statements are written in the common subset of SQLite and PostgreSQL with `?` for values; rows come back
 * as arrays in the order of the columns asked for. Everything that differs between engines (locking, change notification, integrity checks,
 * errors) is behind these calls. All of them fail with the same `ServiceError` codes: `store-locked`, `store-unavailable`,
 * `store-corrupt`, `already-exists`, `disk-full`, `state-unwritable`.
 */

import { ServiceError } from '../../core/error.ts'

/** How long a change waits for another writer, by default. */
export const LOCK_WAIT_MS = 5000

/** Whole numbers stay below 2^53. */
export type SqlValue = string | number | null

export type SqlRow = readonly SqlValue[]

export interface SqlReader {
  /** Statements run in another process, so that a long one holds no event loop here. */
  readonly isRemote: boolean
  rows(sql: string, values?: readonly SqlValue[]): Promise<SqlRow[]>
  /**
   * The same rows a page at a time, all of one state, for results that would fill the memory or block the event loop. A page is valid
   * until the next is requested.
   */
  pages(sql: string, values?: readonly SqlValue[]): AsyncIterable<SqlRow[]>
  hasTable(name: string): Promise<boolean>
}

export interface SqlWriter extends SqlReader {
  run(sql: string, values?: readonly SqlValue[]): Promise<void>
}

export interface SqlDatabase extends SqlReader, AsyncDisposable {
  /** The name of the database in messages, without its password. */
  readonly name: string
  /** What the operator does when the database is damaged: a sentence, with the command where there is one. */
  readonly restoreAdvice: string

  /** Runs `work` on one unchanging state: everything it reads was committed together. */
  read<T>(work: (view: SqlReader) => Promise<T>): Promise<T>

  /**
   * Runs `work` as the only writer among all processes and commits it durably, or leaves nothing behind when it throws. Fails with `store-locked`
   * when another writer does not finish within the lock wait, and with `CommitInDoubt` when the response to the commit was lost.
   */
  change<T>(work: (tx: SqlWriter) => Promise<T>): Promise<T>

  /**
   * A small write beside the changes, for counting: it survives the end of the process but, unless `isDurable`, the last of it may be lost with the
   * machine, and it fails with `store-locked` rather than wait for a writer. Fails with `CommitInDoubt` when the response to the commit was
   * lost; after any other error nothing was committed.
   */
  count(work: (tx: SqlWriter) => Promise<void>, how?: { readonly isDurable: boolean }): Promise<void>

  /** Calls back within half a second of any commit by any process. May also call without a commit. */
  watch(onStir: () => void): Promise<AsyncDisposable>

  /** The result of the engine's own integrity check, at most a few sentences. Tables in `except` are left out: it reads all pages of a table. */
  damage(except?: readonly string[]): Promise<string[]>
}

/** The response to a commit was lost. Only the server knows whether it committed, so what is repeated must be recognizable as a repetition. */
export class CommitInDoubt extends ServiceError {
  constructor(store: string, cause: unknown) {
    super('store-unavailable', `${store} did not respond to a commit`, {
      fix: 'Look whether the change was made before you repeat it.',
      fields: { store },
      cause,
    })
  }
}
