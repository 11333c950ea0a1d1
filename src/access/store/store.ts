import type { BackupFacts, BackupSummary } from '../backup/summary.ts'
import type { BillingStore } from './billing/store.ts'
import type {
  Actor,
  AddedUsage,
  HourUsage,
  MethodUsageRow,
  RecordKind,
  Records,
  UsageRow,
  UsageSelection,
} from './model.ts'
import type { Page, PageRequest } from './page.ts'

/** Read access to the store. Inside `AccessStore.read` and a change all reads belong to one revision; on the store itself each reads the newest. */
export interface AccessView {
  revision(): Promise<number>

  get<K extends RecordKind>(kind: K, id: string): Promise<Records[K] | undefined>
  /** By an indexed field: `name` of customers, subscriptions and nodes; `subscriptionId`, `customerId`, `subjectId`, `sha256`, `username`. */
  find<K extends RecordKind>(kind: K, where: Partial<Records[K]>): Promise<Records[K][]>
  /** The records with these ids, as far as they exist, by id. */
  getAll<K extends RecordKind>(kind: K, ids: Iterable<string>): Promise<Map<string, Records[K]>>
  list<K extends RecordKind>(kind: K): Promise<Records[K][]>
  /** A part of a list, for processes with very many records: no statement of it holds the event loop for long. */
  page<K extends RecordKind>(kind: K, request: PageRequest<K>): Promise<Page<Records[K]>>
  /** Names after a name, in order. */
  names(kind: NamedKind, range: NameRange): Promise<string[]>
  /** The number of subscriptions of each of these customers that has some. */
  subscriptionCounts(customerIds: readonly string[]): Promise<Map<string, number>>
  /** Records of one kind changed after `revision`, in ascending revision. A first load starts at 0. */
  changedSince<K extends RecordKind>(kind: K, revision: number): AsyncIterable<Records[K]>

  /** The same in any order, in pages, as text with the value of one field: for `snapshot/packed-map.ts`. */
  packedSince<K extends RecordKind>(
    kind: K,
    by: keyof Records[K] & string,
    revision: number,
  ): AsyncIterable<{ readonly key: string; readonly text: string }[]>

  /** Lines of the audit chain in the store, ascending from `fromSeq`. */
  auditLines(fromSeq: number): AsyncIterable<string>
  auditHead(): Promise<{ seq: number; hash: string }>
  /** Lines of the chain, newest first, before a number; with `subject`, those that name this id; with `actions`, those of these changes. */
  auditPage(request: AuditPageRequest): Promise<AuditPage>
  /**
   * The audit file of the state folder and its end as recorded in the store: its last line, its size including that line's newline, and the line
   * with which it was rewritten after it had been missing.
   */
  auditMirror(): Promise<{ file: string; seq: number; bytes: number; remadeAt: number | null }>

  /** Usage in the order of its hours, a page at a time: there may be very many rows. */
  usagePages(selection: UsageSelection): AsyncIterable<UsageRow[]>
  methodUsagePages(selection: UsageSelection): AsyncIterable<MethodUsageRow[]>
}

/**
 * The contract of the access store, the same on SQLite and PostgreSQL. Readers see only committed changes; a change and its line in the audit log
 * are one transaction, which is durable when `change` resolves.
 */
export interface AccessStore extends AccessView, AsyncDisposable {
  /** The display name of the store: a file path, or a database URL without its password. */
  readonly name: string

  /** Runs `work` on a consistent view: everything it reads belongs to one revision. */
  read<T>(work: (view: AccessView) => Promise<T>): Promise<T>

  /**
   * Runs `work` under the write lock. Its records and the audit line it returns are committed together; a throw rolls back.
   * Waits at most 5 s for another writer, then fails with `store-locked`.
   */
  change<T>(
    context: ChangeContext,
    work: (records: AccessTransaction) => Promise<{ audit: AuditEntry; result: T }>,
  ): Promise<T>

  /**
   * Adds usage. Not a change: no revision, no audit line. A batch with a mark is added once, however often it is sent: marks of one spool count up,
   * and one that the store already has is skipped.
   */
  addUsage(rows: readonly AddedUsage[], lastUsed: ReadonlyMap<string, number>, mark?: UsageMark): Promise<void>
  usage(filter: { subscriptionId?: string; fromMs?: number; toMs?: number }): Promise<UsageRow[]>
  /** The same usage by method, of the UTC days that begin in the period. */
  methodUsage(filter: { subscriptionId?: string; fromMs?: number; toMs?: number }): Promise<MethodUsageRow[]>
  /** The sum of all subscriptions in the hour that begins at `hour`, added up in slices of time. */
  hourUsage(hour: number): Promise<HourUsage>
  /** Sum of units since `fromMs` by subscription, the initial value of the monthly quota. */
  unitsSince(fromMs: number): Promise<Map<string, number>>
  lastUsed(tokenId: string): Promise<number | undefined>
  /** The same of many tokens, by id, where they were used. */
  lastUsedOf(tokenIds: Iterable<string>): Promise<Map<string, number>>
  /**
   * Deletes the usage of hours before `beforeMs`, at most `hoursMax` of them, oldest first, in parts between which the event loop runs. Returns the
   * number of hours deleted.
   */
  pruneUsage(beforeMs: number, hoursMax: number, signal?: AbortSignal): Promise<number>

  /** The events for a billing system. Except for the changes of the operator, no revision and no audit line. */
  readonly billing: BillingStore

  /** A random 32-byte key shared by all processes of the store, created on first use. */
  sharedKey(purpose: 'ws-ticket' | 'shred-challenge'): Promise<Uint8Array>

  /** Calls `onMoved` within a second after a change, or after the store was replaced by one with another history. */
  follow(onMoved: (revision: number) => void): Promise<AsyncDisposable>

  /** Writes a backup (`backup/format.ts`) of one revision, without blocking other readers and writers. */
  backup(put: (text: string) => Promise<void>, facts: BackupFacts): Promise<BackupSummary>

  /** Checks all rows and returns the findings; an empty list means no damage. Calls `onChecked` while it reads the history of usage. */
  integrity(onChecked?: OnChecked): Promise<string[]>
}

/** Called after each page of a table, with the rows of it that are checked. */
export type OnChecked = (table: string, rows: number) => void

export type UsageMark = {
  /** A ULID: the time when the spool began, and a random part. */
  readonly spool: string
  readonly seq: number
  /** Whether it must be on the disk when the call resolves. */
  readonly isDurable: boolean
}

/** Kinds of records that have a name. */
export type NamedKind = 'customers' | 'subscriptions' | 'nodes'

type NameRange = { readonly after: string; readonly limit: number }

export type AuditPageRequest = {
  readonly before?: number | undefined
  readonly limit: number
  readonly subject?: string | undefined
  readonly actions?: readonly string[] | undefined
}

/** May have fewer lines than asked for, although older ones follow. `next` is the `before` of the next page; null at the first line. */
export type AuditPage = { readonly lines: readonly string[]; readonly next: number | null }

export type ChangeContext = { readonly actor: Actor; readonly nowMs: number }

export interface AccessTransaction {
  get<K extends RecordKind>(kind: K, id: string): Promise<Records[K] | undefined>
  find<K extends RecordKind>(kind: K, where: Partial<Records[K]>): Promise<Records[K][]>
  page<K extends RecordKind>(kind: K, request: PageRequest<K>): Promise<Page<Records[K]>>
  names(kind: NamedKind, range: NameRange): Promise<string[]>
  /** Inserts or replaces; the store sets `revision`. */
  put<K extends RecordKind>(kind: K, record: Omit<Records[K], 'revision'>): Promise<void>
}

export type AuditEntry = {
  readonly action: string
  readonly subjects: readonly string[]
  readonly before?: unknown
  readonly after?: unknown
}
