import type { BackupFacts, BackupSummary } from '../backup/summary.ts'
import type { Actor, RecordKind, Records, UsageRow } from './model.ts'

/** What can be read of the store. Inside `AccessStore.read` and a change all answers belong to one revision; on the store itself each is the newest. */
export interface AccessView {
  revision(): Promise<number>

  get<K extends RecordKind>(kind: K, id: string): Promise<Records[K] | undefined>
  /** By an indexed field: `name` of customers, subscriptions and nodes; `subscriptionId`, `customerId`, `subjectId`, `sha256`, `username`. */
  find<K extends RecordKind>(kind: K, where: Partial<Records[K]>): Promise<Records[K][]>
  list<K extends RecordKind>(kind: K): Promise<Records[K][]>
  /** What changed after `revision`, one kind at a time in ascending revision. Used by followers; a first load starts at 0. */
  changedSince<K extends RecordKind>(kind: K, revision: number): AsyncIterable<Records[K]>

  /** The same in any order and as text with the value of one field, some at a time: for those who keep very many (`packed-map.ts`). */
  packedSince<K extends RecordKind>(
    kind: K,
    by: keyof Records[K] & string,
    revision: number,
  ): AsyncIterable<{ readonly key: string; readonly text: string }[]>

  /** Lines of the audit chain as kept in the store, ascending from `seq`. */
  auditLines(fromSeq: number): AsyncIterable<string>
  auditHead(): Promise<{ seq: number; hash: string }>
  /**
   * The audit file of this process's state folder and how far the store says it goes: its last line, its size with that line's newline, and the
   * line with which it was written anew after it had been gone.
   */
  auditMirror(): Promise<{ file: string; seq: number; bytes: number; remadeAt: number | null }>
}

/**
 * The contract of the access store, the same on SQLite and PostgreSQL. Readers see whole changes only; a change is one transaction together with
 * its line in the audit log, and is durable when `change` resolves.
 */
export interface AccessStore extends AccessView, AsyncDisposable {
  /** How the store is named to a person: a file path, or a database without its password. */
  readonly name: string

  /** Runs `work` on one unchanging state of the store: everything it reads belongs to the same revision. */
  read<T>(work: (view: AccessView) => Promise<T>): Promise<T>

  /**
   * Runs `work` under the store's write lock. What it puts and the audit line it returns are committed together; a throw leaves nothing behind.
   * Waits at most 5 s for another writer, then fails with `store-locked`.
   */
  change<T>(
    context: ChangeContext,
    work: (tx: AccessTransaction) => Promise<{ audit: AuditEntry; result: T }>,
  ): Promise<T>

  /** Adds counted use. Not a change: no revision, no audit line. */
  addUsage(rows: readonly UsageRow[], lastUsed: ReadonlyMap<string, number>): Promise<void>
  usage(filter: { subscriptionId?: string; fromMs?: number; toMs?: number }): Promise<UsageRow[]>
  /** Sum of units since `fromMs`, by subscription: what the monthly budget starts from. */
  unitsSince(fromMs: number): Promise<Map<string, number>>
  lastUsed(tokenId: string): Promise<number | undefined>
  /** Forgets the counts of hours before `beforeMs`, at most `hoursMax` of them, oldest first. Returns how many hours were forgotten. */
  pruneUsage(beforeMs: number, hoursMax: number): Promise<number>

  /** A random 32-byte key that every process of this store shares, made on first use. */
  sharedKey(purpose: 'ws-ticket' | 'shred-challenge'): Promise<Uint8Array>

  /** Calls back soon (well under a second) after the revision moved. */
  follow(onMoved: (revision: number) => void): Promise<AsyncDisposable>

  /** Writes one state of the store as lines of text (`backup-format.ts`), while others go on reading and changing it. */
  backup(put: (text: string) => Promise<void>, facts: BackupFacts): Promise<BackupSummary>

  /** Reads everything and says what is wrong; an empty list means whole. */
  integrity(): Promise<string[]>
}

export type ChangeContext = { readonly actor: Actor; readonly nowMs: number }

export interface AccessTransaction {
  get<K extends RecordKind>(kind: K, id: string): Promise<Records[K] | undefined>
  find<K extends RecordKind>(kind: K, where: Partial<Records[K]>): Promise<Records[K][]>
  /** Inserts or replaces; the store sets `revision`. */
  put<K extends RecordKind>(kind: K, record: Omit<Records[K], 'revision'>): Promise<void>
}

export type AuditEntry = {
  readonly action: string
  readonly subjects: readonly string[]
  readonly before?: unknown
  readonly after?: unknown
}
