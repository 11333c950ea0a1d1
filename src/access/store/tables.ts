import type { Field, FieldFor } from './fields.ts'
import type { RecordKind, Records } from './model.ts'

/**
 * The tables of the store as data: DDL, statements and codecs are made from it, in the common subset of SQLite and PostgreSQL.
 *
 * A record is kept as text in the column `content`: the values of its fields in the order given here, as a JSON array. Fields that rows are looked
 * up by are columns besides. `row_check` is over the content, so that a damaged or hand-edited row is noticed when it is read. One text per row is
 * what lets a process load 100,000 subscriptions in a second.
 */
export type Table<T> = {
  readonly name: string
  /** A new field goes to the end, by a migration that rewrites the rows. */
  readonly fields: { readonly [F in keyof T]-?: FieldFor<T[F]> }
  /** The fields that are columns too. */
  readonly columns: readonly (keyof T & string)[]
  readonly key: keyof T & string
  /** No two rows have the same value here. */
  readonly unique?: readonly (keyof T & string)[]
  readonly indexes?: readonly (readonly (keyof T & string)[])[]
  /** Once a row is there these keep their value: others are looked up by them. */
  readonly fixed?: readonly (keyof T & string)[]
}

/** A table whose records are of no interest: for DDL. */
export type AnyTable = {
  readonly name: string
  readonly fields: Readonly<Record<string, Field>>
  readonly columns: readonly string[]
  readonly key: string
  readonly unique?: readonly string[]
  readonly indexes?: readonly (readonly string[])[]
}

/** How followers read: what changed after a revision, in a total order. */
const BY_REVISION = ['revision', 'id'] as const

export const RECORD_TABLES: { readonly [K in RecordKind]: Table<Records[K]> } = {
  customers: {
    name: 'customers',
    fields: { id: 'text', revision: 'integer', name: 'text', contact: 'text', state: 'text', createdAt: 'integer' },
    columns: ['id', 'revision', 'name'],
    key: 'id',
    unique: ['name'],
    indexes: [BY_REVISION],
  },
  subscriptions: {
    name: 'subscriptions',
    fields: {
      id: 'text',
      revision: 'integer',
      customerId: 'text',
      name: 'text',
      plan: 'text',
      products: 'json',
      overrides: 'json',
      state: 'text',
      createdAt: 'integer',
      validUntil: 'integer?',
    },
    columns: ['id', 'revision', 'name', 'customerId'],
    key: 'id',
    unique: ['name'],
    indexes: [BY_REVISION, ['customerId']],
  },
  tokens: {
    name: 'tokens',
    fields: {
      id: 'text',
      revision: 'integer',
      subscriptionId: 'text',
      sha256: 'text',
      last4: 'text',
      state: 'text',
      createdAt: 'integer',
      createdBy: 'text',
      notAfter: 'integer?',
    },
    columns: ['id', 'revision', 'sha256', 'subscriptionId'],
    key: 'id',
    unique: ['sha256'],
    indexes: [BY_REVISION, ['subscriptionId']],
    fixed: ['sha256', 'subscriptionId'],
  },
  destinations: {
    name: 'destinations',
    fields: {
      id: 'text',
      revision: 'integer',
      ip: 'text',
      port: 'integer',
      proof: 'text',
      paused: 'flag',
      setAt: 'integer',
    },
    columns: ['id', 'revision'],
    key: 'id',
    indexes: [BY_REVISION],
  },
  indexerCredentials: {
    name: 'indexer_credentials',
    fields: {
      id: 'text',
      revision: 'integer',
      subscriptionId: 'text',
      username: 'text',
      sha256: 'text',
      state: 'text',
      createdAt: 'integer',
    },
    columns: ['id', 'revision', 'username', 'subscriptionId'],
    key: 'id',
    unique: ['username'],
    indexes: [BY_REVISION, ['subscriptionId']],
    fixed: ['username', 'subscriptionId'],
  },
  nodes: {
    name: 'nodes',
    fields: {
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
    columns: ['id', 'revision', 'name', 'subscriptionId'],
    key: 'id',
    unique: ['name'],
    indexes: [BY_REVISION, ['subscriptionId']],
  },
  notes: {
    name: 'notes',
    fields: { id: 'text', revision: 'integer', subjectId: 'text', text: 'text', createdAt: 'integer' },
    columns: ['id', 'revision', 'subjectId'],
    key: 'id',
    indexes: [BY_REVISION, ['subjectId']],
  },
  refunds: {
    name: 'refunds',
    fields: {
      id: 'text',
      revision: 'integer',
      subscriptionId: 'text',
      amount: 'text',
      currency: 'text',
      reason: 'text',
      createdAt: 'integer',
    },
    columns: ['id', 'revision', 'subscriptionId'],
    key: 'id',
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
  fields: {
    id: 'integer',
    schemaVersion: 'integer',
    revision: 'integer',
    auditSeq: 'integer',
    auditHash: 'text',
    tallies: 'json',
  },
  columns: ['id', 'schemaVersion'],
  key: 'id',
}

/** How far the audit file of one state folder goes. */
export type MirrorRow = {
  readonly mirror: string
  /** Its last line. */
  readonly seq: number
  /** Its size with that line's newline. */
  readonly bytes: number
  /** The line with which the file, having been gone, was written anew; null when it never was. */
  readonly remadeAt: number | null
}

export const MIRROR_TABLE: Table<MirrorRow> = {
  name: 'audit_mirrors',
  fields: { mirror: 'text', seq: 'integer', bytes: 'integer', remadeAt: 'integer?' },
  columns: ['mirror'],
  key: 'mirror',
}

export type LastUsedRow = { readonly tokenId: string; readonly at: number }

export const LAST_USED_TABLE: Table<LastUsedRow> = {
  name: 'last_used',
  fields: { tokenId: 'text', at: 'integer' },
  columns: ['tokenId', 'at'],
  key: 'tokenId',
}

export type SharedKeyRow = { readonly purpose: string; readonly keyHex: string }

export const SHARED_KEY_TABLE: Table<SharedKeyRow> = {
  name: 'shared_keys',
  fields: { purpose: 'text', keyHex: 'text' },
  columns: ['purpose'],
  key: 'purpose',
}

export const TABLES: readonly AnyTable[] = [
  META_TABLE,
  ...Object.values(RECORD_TABLES),
  MIRROR_TABLE,
  LAST_USED_TABLE,
  SHARED_KEY_TABLE,
]
