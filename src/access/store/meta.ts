import { ServiceError } from '../../core/error.ts'
import type { SqlReader, SqlWriter } from '../../platform/db/sql.ts'
import { CHAIN_START } from '../audit/line.ts'
import { type StoreName, type TableRows, textCheck } from './rows.ts'
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

/**
 * The version of the tables, or 0 when there are none. Every version has this row, this column, and the number at this index of its content, so
 * that an older Sluice can distinguish a newer store from a damaged one.
 */
export async function readSchemaVersion(on: SqlReader, store: StoreName): Promise<number> {
  if (!(await on.hasTable(META_TABLE.name))) return 0
  const [row] = await on.rows(`SELECT schema_version, content, row_check FROM ${META_TABLE.name}`)
  const [version, content, check] = row ?? []
  if (typeof content === 'string' && check === textCheck(META_TABLE.name, content)) {
    const [, schemaVersion] = JSON.parse(content) as [number, number]
    if (schemaVersion === version) return schemaVersion
  }
  throw damagedMeta(store)
}

/** The state of the store. Checks the version each time, because a newer Sluice may migrate the store while this one runs. */
export async function readMeta(
  on: SqlReader,
  rows: TableRows,
  known: { readonly schemaVersion: number; readonly store: StoreName },
): Promise<Meta> {
  const [row, ...more] = await on.rows(rows(META_TABLE).select(''))
  if (row === undefined || more.length > 0) throw damagedMeta(known.store)
  const meta = rows(META_TABLE).decode(row)
  if (meta.schemaVersion > known.schemaVersion) throw newerStore(known.store, meta.schemaVersion, known.schemaVersion)
  return meta
}

export async function writeMeta(tx: SqlWriter, rows: TableRows, meta: Meta): Promise<void> {
  await tx.run(rows(META_TABLE).upsert, rows(META_TABLE).encode(meta))
}

function damagedMeta({ name, restoreAdvice }: StoreName): ServiceError {
  return new ServiceError('store-corrupt', `${name}: the row of table ${META_TABLE.name} is missing or damaged`, {
    fields: { store: name },
    fix: restoreAdvice,
  })
}

export function olderStore(store: StoreName, found: number, known: number): ServiceError {
  return new ServiceError(
    'store-older',
    `${store.name} has tables of version ${found}; this Sluice has version ${known}, and its next start migrates them`,
    { fields: { store: store.name, found, known } },
  )
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
