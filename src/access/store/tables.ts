import type { Field, FieldFor } from './fields.ts'
import type { RecordKind, Records } from './model.ts'

/**
 * The tables of the store as data, from which DDL, statements and codecs are generated in the common subset of SQLite and PostgreSQL.
 *
 * A record is stored as text in the column `content`: the values of its fields in the order given here, as a JSON array. Fields used for look-ups are
 * also columns. `row_check` covers the content, so that a damaged or manually edited row is detected when it is read. With one text per row a process
 * loads 100,000 subscriptions in a second.
 */
export type Table<T> = {
  readonly name: string
  /** A new field goes to the end, by a migration that rewrites the rows. */
  readonly fields: { readonly [F in keyof T]-?: FieldFor<T[F]> }
  /** The fields that are also columns. */
  readonly columns: readonly (keyof T & string)[]
  readonly key: keyof T & string
  /** Fields with a unique index. */
  readonly unique?: readonly (keyof T & string)[]
  readonly indexes?: readonly (readonly (keyof T & string)[])[]
  /** Fields that never change once a row exists, because they are keys of snapshots. */
  readonly fixed?: readonly (keyof T & string)[]
}

/** A table without its record type, for DDL. */
export type AnyTable = {
  readonly name: string
  readonly fields: Readonly<Record<string, Field>>
  readonly columns: readonly string[]
  readonly key: string
  readonly unique?: readonly string[]
  readonly indexes?: readonly (readonly string[])[]
}

export const RECORD_TABLES: { readonly [K in RecordKind]: Table<Records[K]> } = {
  customers: recordTable(
    'customers',
    { name: 'text', contact: 'text', state: 'text', createdAt: 'integer' },
    { columns: ['name'], unique: ['name'] },
  ),
  subscriptions: recordTable(
    'subscriptions',
    {
      customerId: 'text',
      name: 'text',
      plan: 'text',
      products: 'json',
      overrides: 'json',
      state: 'text',
      createdAt: 'integer',
      validUntil: 'integer?',
    },
    { columns: ['name', 'customerId', 'validUntil'], unique: ['name'], indexed: ['customerId'] },
  ),
  tokens: recordTable(
    'tokens',
    {
      subscriptionId: 'text',
      sha256: 'text',
      last4: 'text',
      state: 'text',
      createdAt: 'integer',
      createdBy: 'text',
      notAfter: 'integer?',
    },
    {
      columns: ['sha256', 'subscriptionId'],
      unique: ['sha256'],
      indexed: ['subscriptionId'],
      fixed: ['sha256', 'subscriptionId'],
    },
  ),
  destinations: recordTable(
    'destinations',
    { ip: 'text', port: 'integer', proof: 'text', paused: 'flag', setAt: 'integer' },
    { columns: [] },
  ),
  indexerCredentials: recordTable(
    'indexer_credentials',
    { subscriptionId: 'text', username: 'text', sha256: 'text', state: 'text', createdAt: 'integer' },
    {
      columns: ['username', 'subscriptionId'],
      unique: ['username'],
      indexed: ['subscriptionId'],
      fixed: ['username', 'subscriptionId'],
    },
  ),
  nodes: recordTable(
    'nodes',
    {
      name: 'text',
      rpc: 'text',
      ws: 'text',
      grpc: 'text',
      credential: 'text?',
      subscriptionId: 'text?',
      createdAt: 'integer',
    },
    { columns: ['name', 'subscriptionId'], unique: ['name'], indexed: ['subscriptionId'] },
  ),
  notes: recordTable(
    'notes',
    { subjectId: 'text', text: 'text', createdAt: 'integer' },
    { columns: ['subjectId'], indexed: ['subjectId'] },
  ),
  refunds: recordTable(
    'refunds',
    { subscriptionId: 'text', amount: 'text', currency: 'text', reason: 'text', createdAt: 'integer' },
    { columns: ['subscriptionId'], indexed: ['subscriptionId'] },
  ),
  admins: recordTable(
    'admins',
    {
      name: 'text',
      role: 'text',
      sha256: 'text',
      last4: 'text',
      state: 'text',
      createdAt: 'integer',
      createdBy: 'text',
      expiresAt: 'integer?',
    },
    // The name is free again once its administrator is removed.
    { columns: ['name', 'sha256'], unique: ['sha256'], indexed: ['name'] },
  ),
}

/** Every record begins with its id and revision; followers read changed records in the order of these. */
function recordTable<T extends { id: string; revision: number }>(
  name: string,
  fields: Omit<Table<T>['fields'], 'id' | 'revision'>,
  {
    columns,
    indexed = [],
    ...more
  }: Pick<Table<T>, 'columns' | 'unique' | 'fixed'> & { indexed?: Table<T>['columns'] },
): Table<T> {
  return {
    name,
    fields: { id: 'text', revision: 'integer', ...fields } as Table<T>['fields'],
    columns: ['id', 'revision', ...columns],
    key: 'id',
    indexes: [['revision', 'id'], ...indexed.map((field) => [field])],
    ...more,
  }
}

export const RECORD_KINDS = Object.keys(RECORD_TABLES) as RecordKind[]

/** The number of rows of a kind and the sum of their checks: detects a lost row and an old version of a row. */
export type Tally = { readonly rows: number; readonly sum: number }

/** The single row with the state of the store, rewritten by every change. */
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

/** The recorded end of the audit file of one state folder; `usage-marks.ts` has rows of its own in this table. */
export type MirrorRow = {
  readonly mirror: string
  /** The number of its last line. */
  readonly seq: number
  /** Its size including that line's newline. */
  readonly bytes: number
  /** The line with which a missing file was rewritten; null when it never was missing. */
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
