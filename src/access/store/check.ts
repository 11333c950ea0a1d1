import { messageOf } from '../../core/error.ts'
import type { SqlDatabase, SqlReader, SqlRow } from '../../platform/db/sql.ts'
import { readAuditLines } from '../audit/rows.ts'
import { findChainBreak } from '../audit/verify.ts'
import { BILLING_EVENT_TABLE, BILLING_TABLES } from './billing/tables.ts'
import { readMeta } from './meta.ts'
import type { RecordKind, Records } from './model.ts'
import { addToSum, EMPTY_TALLY } from './record-access.ts'
import type { TableRows } from './rows.ts'
import type { OnChecked } from './store.ts'
import {
  LAST_USED_TABLE,
  META_TABLE,
  type Meta,
  MIRROR_TABLE,
  RECORD_KINDS,
  RECORD_TABLES,
  SHARED_KEY_TABLE,
  type Table,
} from './tables.ts'
import { USAGE_TABLES } from './usage-rows.ts'

/** Findings listed at most. */
const FINDINGS_MAX = 20

/** Tables that grow with the time and not with the customers. Reading them takes minutes where there are many rows, so the start of a process does not. */
export const HISTORY_TABLES: readonly string[] = [
  ...USAGE_TABLES.map(({ name }) => name),
  BILLING_EVENT_TABLE.name,
  'billing_hours',
]

export type RowCheck = {
  readonly schemaVersion: number
  /** Whether the rows of `HISTORY_TABLES` are left out. */
  readonly withoutHistory?: boolean
  readonly onChecked?: OnChecked | undefined
}

/** Checks every row against its `row_check`, every kind of record against its tally, and the audit chain against its head. */
export async function findRowDamage(database: SqlDatabase, rows: TableRows, how: RowCheck): Promise<string[]> {
  const found: string[] = []
  try {
    await database.read(async (view) => {
      for await (const finding of checkAll(view)) if (found.push(finding) >= FINDINGS_MAX) return
    })
  } catch (error) {
    found.push(messageOf(error))
  }
  return found

  async function* checkAll(view: SqlReader): AsyncGenerator<string> {
    const { schemaVersion, withoutHistory = false, onChecked } = how
    const meta = await readMeta(view, rows, { schemaVersion, store: database })
    for (const kind of RECORD_KINDS) yield* checkRecords(view, rows, kind, meta)
    const head = { seq: meta.auditSeq, hash: meta.auditHash }
    const inChain = await findChainBreak(readAuditLines(view, 1), head)
    if (inChain) yield `line ${inChain.line} of the audit chain ${inChain.what}`
    const others = [META_TABLE, MIRROR_TABLE, LAST_USED_TABLE, SHARED_KEY_TABLE, ...BILLING_TABLES]
    const tables = [...others.map((table) => ({ name: table.name, ...rows(table as Table<never>) })), ...USAGE_TABLES]
    for (const table of tables)
      if (!(withoutHistory && HISTORY_TABLES.includes(table.name))) yield* checkRows(view, table, onChecked)
  }
}

async function* checkRecords(view: SqlReader, rows: TableRows, kind: RecordKind, meta: Meta): AsyncGenerator<string> {
  const { table, selectAll, matchesCheck } = rows(RECORD_TABLES[kind] as Table<Records[RecordKind]>)
  let tally = EMPTY_TALLY
  yield* checkRows(view, {
    name: table.name,
    selectAll,
    matchesCheck(row) {
      tally = { rows: tally.rows + 1, sum: addToSum(tally.sum, Number(row.at(-1))) }
      return matchesCheck(row)
    },
  })
  const expected = meta.tallies[kind] ?? EMPTY_TALLY
  if (tally.rows !== expected.rows) {
    yield `table ${table.name} has ${tally.rows} rows where ${expected.rows} were written`
  } else if (tally.sum !== expected.sum) {
    yield `table ${table.name} has other rows than those written last`
  }
}

type CheckedTable = { readonly name: string; readonly selectAll: string; matchesCheck(row: SqlRow): boolean }

async function* checkRows(
  view: SqlReader,
  { name, selectAll, matchesCheck }: CheckedTable,
  onChecked?: OnChecked,
): AsyncGenerator<string> {
  let checked = 0
  for await (const page of view.pages(selectAll)) {
    for (const row of page)
      if (!matchesCheck(row)) yield `row ${String(row[0])} of table ${name} does not match its check`
    checked += page.length
    onChecked?.(name, checked)
  }
}
