import type { Column, ColumnFor } from './columns.ts'
import type { RecordKind, Records, UsageRow } from './model.ts'

/**
 * Every table of the store as data. DDL, statements and codecs are made from it, in the common subset of SQLite and PostgreSQL. Besides its columns
 * each table has `row_check`, over the content of the row, so that a damaged or hand-edited row is noticed when it is read.
 */
export type Table<T> = {
  readonly name: string
  readonly columns: { readonly [F in keyof T]-?: ColumnFor<T[F]> }
  readonly key: readonly (keyof T & string)[]
  /** No two rows have the same value here. */
  readonly unique?: readonly (keyof T & string)[]
  readonly indexes?: readonly (readonly (keyof T & string)[])[]
  /** Once a row is there these keep their value: others are looked up by them. */
  readonly fixed?: readonly (keyof T & string)[]
}

/** A table whose records are of no interest: for DDL. */
export type AnyTable = {
  readonly name: string
  readonly columns: Readonly<Record<string, Column>>
  readonly key: readonly string[]
  readonly unique?: readonly string[]
  readonly indexes?: readonly (readonly string[])[]
}

/** How followers read: what changed after a revision, in a total order. */
const BY_REVISION = ['revision', 'id'] as const

export const RECORD_TABLES: { readonly [K in RecordKind]: Table<Records[K]> } = {
  customers: {
    name: 'customers',
    columns: { id: 'text', revision: 'integer', name: 'text', contact: 'text', state: 'label', createdAt: 'integer' },
    key: ['id'],
    unique: ['name'],
    indexes: [BY_REVISION],
  },
  subscriptions: {
    name: 'subscriptions',
    columns: {
      id: 'text',
      revision: 'integer',
      customerId: 'text',
      name: 'text',
      plan: 'label',
      products: 'json',
      overrides: 'json',
      state: 'label',
      createdAt: 'integer',
      validUntil: 'integer?',
    },
    key: ['id'],
    unique: ['name'],
    indexes: [BY_REVISION, ['customerId']],
  },
  tokens: {
    name: 'tokens',
    columns: {
      id: 'text',
      revision: 'integer',
      subscriptionId: 'text',
      sha256: 'text',
      last4: 'text',
      state: 'label',
      createdAt: 'integer',
      createdBy: 'label',
      notAfter: 'integer?',
    },
    key: ['id'],
    unique: ['sha256'],
    indexes: [BY_REVISION, ['subscriptionId']],
    fixed: ['sha256', 'subscriptionId'],
  },
  destinations: {
    name: 'destinations',
    columns: {
      id: 'text',
      revision: 'integer',
      ip: 'text',
      port: 'integer',
      proof: 'label',
      paused: 'flag',
      setAt: 'integer',
    },
    key: ['id'],
    indexes: [BY_REVISION],
  },
  indexerCredentials: {
    name: 'indexer_credentials',
    columns: {
      id: 'text',
      revision: 'integer',
      subscriptionId: 'text',
      username: 'text',
      sha256: 'text',
      state: 'label',
      createdAt: 'integer',
    },
    key: ['id'],
    unique: ['username'],
    indexes: [BY_REVISION, ['subscriptionId']],
    fixed: ['username', 'subscriptionId'],
  },
  nodes: {
    name: 'nodes',
    columns: {
      id: 'text',
      revision: 'integer',
      name: 'text',
      rpc: 'text',
      ws: 'text',
      grpc: 'text',
      credential: 'text?',
      subscriptionId: 'text?',
      createdAt: 'integer',
    },
    key: ['id'],
    unique: ['name'],
    indexes: [BY_REVISION, ['subscriptionId']],
  },
  notes: {
    name: 'notes',
    columns: { id: 'text', revision: 'integer', subjectId: 'text', text: 'text', createdAt: 'integer' },
    key: ['id'],
    indexes: [BY_REVISION, ['subjectId']],
  },
  refunds: {
    name: 'refunds',
    columns: {
      id: 'text',
      revision: 'integer',
      subscriptionId: 'text',
      amount: 'text',
      currency: 'label',
      reason: 'text',
      createdAt: 'integer',
    },
    key: ['id'],
    indexes: [BY_REVISION, ['subscriptionId']],
  },
}

export const RECORD_KINDS = Object.keys(RECORD_TABLES) as RecordKind[]

/** How many rows of a kind there are and the sum of their checks: a row that is lost, or an old one come back, changes it. */
export type Tally = { readonly rows: number; readonly sum: number }

/** The one row that says where the store stands. Every change rewrites it. */
export type Meta = {
  readonly id: number
  readonly schemaVersion: number
  readonly revision: number
  readonly auditSeq: number
  readonly auditHash: string
  readonly tallies: { readonly [K in RecordKind]?: Tally }
}

export const META_TABLE: Table<Meta> = {
  name: 'meta',
  columns: {
    id: 'integer',
    schemaVersion: 'integer',
    revision: 'integer',
    auditSeq: 'integer',
    auditHash: 'text',
    tallies: 'json',
  },
  key: ['id'],
}

/** The audit chain. A line's hash stands in the line after it, the last one's in `meta`; the check only makes damage cheap to find. */
export type AuditRow = { readonly seq: number; readonly line: string }

export const AUDIT_TABLE: Table<AuditRow> = { name: 'audit', columns: { seq: 'integer', line: 'text' }, key: ['seq'] }

/** How far the audit file of one state folder goes: its last line, and its size with that line's newline. */
export type MirrorRow = { readonly mirror: string; readonly seq: number; readonly bytes: number }

export const MIRROR_TABLE: Table<MirrorRow> = {
  name: 'audit_mirrors',
  columns: { mirror: 'text', seq: 'integer', bytes: 'integer' },
  key: ['mirror'],
}

export const USAGE_TABLE: Table<UsageRow> = {
  name: 'usage_hours',
  columns: {
    subscriptionId: 'text',
    hour: 'integer',
    interface: 'label',
    calls: 'integer',
    units: 'integer',
    refused: 'integer',
  },
  key: ['subscriptionId', 'hour', 'interface'],
  indexes: [['hour']],
}

export type LastUsedRow = { readonly tokenId: string; readonly at: number }

export const LAST_USED_TABLE: Table<LastUsedRow> = {
  name: 'last_used',
  columns: { tokenId: 'text', at: 'integer' },
  key: ['tokenId'],
}

export type SharedKeyRow = { readonly purpose: string; readonly keyHex: string }

export const SHARED_KEY_TABLE: Table<SharedKeyRow> = {
  name: 'shared_keys',
  columns: { purpose: 'text', keyHex: 'text' },
  key: ['purpose'],
}

export const ALL_TABLES: readonly AnyTable[] = [
  META_TABLE,
  ...Object.values(RECORD_TABLES),
  AUDIT_TABLE,
  MIRROR_TABLE,
  USAGE_TABLE,
  LAST_USED_TABLE,
  SHARED_KEY_TABLE,
]
