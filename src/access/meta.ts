import { ServiceError } from '../core/service-error.ts'
import type { SqlReader, SqlWriter } from '../host/sql.ts'
import { CHAIN_START } from './audit-line.ts'
import type { StoreName, TableRows } from './rows.ts'
import { META_TABLE, type Meta } from './tables.ts'

const META_ID = 1

export const NEW_META: Meta = {
  id: META_ID,
  schemaVersion: 0,
  revision: 0,
  auditSeq: CHAIN_START.seq,
  auditHash: CHAIN_START.hash,
  tallies: {},
}

/** The version of the tables, or 0 when there are none. Read by itself, because the rest of the row may look different in another version. */
export async function readSchemaVersion(on: SqlReader): Promise<number> {
  if (!(await on.hasTable(META_TABLE.name))) return 0
  return Number((await on.rows(`SELECT schema_version FROM ${META_TABLE.name}`))[0]?.[0] ?? 0)
}

/** Where the store stands. A newer Sluice may have migrated it while this one runs, so the version is looked at each time. */
export async function readMeta(
  on: SqlReader,
  rows: TableRows,
  known: { readonly schemaVersion: number; readonly store: StoreName },
): Promise<Meta> {
  const [row, ...more] = await on.rows(rows(META_TABLE).select(''))
  if (row === undefined || more.length > 0) {
    throw new ServiceError(
      'store-corrupt',
      `${known.store.name}: the row that says where the store stands is missing`,
      {
        fields: { store: known.store.name },
        fix: known.store.restoreAdvice,
      },
    )
  }
  const meta = rows(META_TABLE).decode(row)
  if (meta.schemaVersion > known.schemaVersion) throw newerStore(known.store, meta.schemaVersion, known.schemaVersion)
  return meta
}

export async function writeMeta(tx: SqlWriter, rows: TableRows, meta: Meta): Promise<void> {
  await tx.run(rows(META_TABLE).upsert, rows(META_TABLE).encode(meta))
}

export function newerStore(store: StoreName, found: number, known: number): ServiceError {
  return new ServiceError(
    'store-newer',
    `${store.name} has tables of version ${found}; this Sluice knows version ${known}`,
    {
      fields: { store: store.name, found, known },
    },
  )
}
