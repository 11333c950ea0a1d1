import { ServiceError } from '../../core/error.ts'
import type { SqlReader, SqlWriter } from '../../platform/db/sql.ts'
import type { RecordKind, Records } from './model.ts'
import { countSubscriptions, readAll, readNames, readPage } from './page.ts'
import type { TableRows } from './rows.ts'
import type { AccessTransaction, AccessView } from './store.ts'
import { type Meta, RECORD_TABLES, type Tally } from './tables.ts'

type RecordReader = Pick<
  AccessView,
  'get' | 'getAll' | 'find' | 'list' | 'page' | 'names' | 'subscriptionCounts' | 'changedSince' | 'packedSince'
>

/** Reads records: of one revision inside a transaction, of the newest otherwise. */
export function createRecordReader(on: SqlReader, rows: TableRows): RecordReader {
  async function select<K extends RecordKind>(kind: K, where: Partial<Records[K]>): Promise<Records[K][]> {
    const of = rows(RECORD_TABLES[kind])
    const { sql, values } = of.where(where)
    return (await on.rows(of.select(`${sql} ORDER BY id`), values)).map(of.decode)
  }
  return {
    get: async (kind, id) => (await select(kind, { id } as Partial<Records[typeof kind]>))[0],
    getAll: (kind, ids) => readAll(on, rows, kind, ids),
    find: select,
    list: (kind) => select(kind, {}),
    page: (kind, request) => readPage(on, rows, kind, request),
    names: (kind, range) => readNames(on, kind, range),
    subscriptionCounts: (customerIds) => countSubscriptions(on, customerIds),
    async *changedSince<K extends RecordKind>(kind: K, revision: number) {
      const of = rows(RECORD_TABLES[kind])
      for await (const page of on.pages(of.select('WHERE revision > ? ORDER BY revision, id'), [revision])) {
        for (const row of page) yield of.decode(row)
      }
    },
    async *packedSince(kind, by, revision) {
      const of = rows(RECORD_TABLES[kind])
      // Without ORDER BY, so that a first load is a sequential scan of the table.
      for await (const page of on.pages(of.selectPacked(by, 'WHERE revision > ?'), [revision])) yield page.map(of.pack)
    },
  }
}

export type RecordWriter = AccessTransaction & {
  /** The tallies of all kinds including the records put. */
  tallies(): Meta['tallies']
}

/** Writes records inside a change. Every record gets the revision of the change. */
export function createRecordWriter(tx: SqlWriter, rows: TableRows, meta: Meta): RecordWriter {
  const { get, find, page, names } = createRecordReader(tx, rows)
  const revision = meta.revision + 1
  const tallies: { -readonly [K in RecordKind]?: Tally } = { ...meta.tallies }

  return {
    get,
    find,
    page,
    names,
    tallies: () => tallies,
    async put(kind, given) {
      const of = rows(RECORD_TABLES[kind])
      const record = { ...given, revision } as unknown as Records[typeof kind]
      const old = await get(kind, record.id)
      if (old !== undefined) refuseChangeOfFixed(of.table.fixed ?? [], old, record)
      for (const field of of.table.unique ?? []) {
        const [other] = (await find(kind, { [field]: record[field] } as never)).filter(({ id }) => id !== record.id)
        if (other === undefined) continue
        throw new ServiceError('already-exists', `${of.table.name}: a record with this ${field} already exists`, {
          fields: { kind, field, id: other.id },
        })
      }
      const row = of.encode(record)
      await tx.run(of.upsert, row)
      const added = row.at(-1) as number
      const removed = old === undefined ? 0 : (of.encode(old).at(-1) as number)
      const { rows: count, sum } = tallies[kind] ?? EMPTY_TALLY
      tallies[kind] = { rows: count + (old === undefined ? 1 : 0), sum: addToSum(sum, added - removed) }
    },
  }
}

export const EMPTY_TALLY: Tally = { rows: 0, sum: 0 }

/** Sums are modulo this, so that they stay exact integers. */
const SUM_LIMIT = 2 ** 48

export function addToSum(sum: number, change: number): number {
  return (sum + change + SUM_LIMIT) % SUM_LIMIT
}

function refuseChangeOfFixed<T extends { id: string }>(fixed: readonly (keyof T & string)[], old: T, record: T): void {
  for (const field of fixed) {
    if (old[field] === record[field]) continue
    throw new ServiceError('invalid-value', `${field} of ${old.id} cannot be changed: create a new record`, {
      fields: { field },
    })
  }
}
