import { messageOf } from '../core/service-error.ts'
import type { SqlDatabase, SqlReader, SqlRow } from '../host/sql.ts'
import { readAuditLines } from './audit-rows.ts'
import { findChainBreak } from './audit-verify.ts'
import { readMeta } from './meta.ts'
import type { RecordKind } from './model.ts'
import { addToSum, EMPTY_TALLY } from './record-access.ts'
import type { Rows, TableRows } from './rows.ts'
import {
  AUDIT_TABLE,
  LAST_USED_TABLE,
  type Meta,
  MIRROR_TABLE,
  RECORD_KINDS,
  RECORD_TABLES,
  SHARED_KEY_TABLE,
  USAGE_TABLE,
} from './tables.ts'
import { isWholeUsage } from './usage-rows.ts'

/** With more than this the store is damaged beyond listing. */
const FINDINGS_MAX = 20

/** Reads every row against its check, every kind of record against its tally, and the audit chain against its head. */
export async function findRowDamage(
  database: SqlDatabase,
  rows: TableRows,
  known: { readonly schemaVersion: number },
): Promise<string[]> {
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
    const meta = await readMeta(view, rows, { ...known, store: database })
    for (const kind of RECORD_KINDS) yield* checkRecords(view, rows, kind, meta)
    yield* checkAudit(view, rows, meta)
    yield* checkRows(view, rows(MIRROR_TABLE))
    yield* checkRows(view, rows(LAST_USED_TABLE))
    yield* checkRows(view, rows(SHARED_KEY_TABLE))
    yield* checkRows(view, { ...rows(USAGE_TABLE), isWhole: isWholeUsage })
  }
}

async function* checkRecords(view: SqlReader, rows: TableRows, kind: RecordKind, meta: Meta): AsyncGenerator<string> {
  const of: Rows<{ readonly id: string; readonly revision: number }> = rows(RECORD_TABLES[kind] as never)
  let tally = EMPTY_TALLY
  for await (const page of view.pages(of.select(''))) {
    for (const row of page) {
      if (!of.isWhole(row)) yield damagedRow(of.table, row)
      else if (of.decode(row).revision > meta.revision)
        yield `row ${row[0]} of table ${of.table.name} is newer than the store`
      tally = { rows: tally.rows + 1, sum: addToSum(tally.sum, Number(row.at(-1))) }
    }
  }
  const expected = meta.tallies[kind] ?? EMPTY_TALLY
  if (tally.rows !== expected.rows) {
    yield `table ${of.table.name} has ${tally.rows} rows where ${expected.rows} were written`
  } else if (tally.sum !== expected.sum) {
    yield `table ${of.table.name} has rows other than those that were written last`
  }
}

async function* checkAudit(view: SqlReader, rows: TableRows, meta: Meta): AsyncGenerator<string> {
  yield* checkRows(view, rows(AUDIT_TABLE))
  const found = await findChainBreak(readAuditLines(view, rows, 1), { seq: meta.auditSeq, hash: meta.auditHash })
  if (found) yield `line ${found.line} of the audit chain ${found.what}`
}

async function* checkRows<T>(view: SqlReader, of: Rows<T>): AsyncGenerator<string> {
  for await (const page of view.pages(of.select(''))) {
    for (const row of page) if (!of.isWhole(row)) yield damagedRow(of.table, row)
  }
}

function damagedRow(table: { readonly name: string }, row: SqlRow): string {
  return `row ${String(row[0])} of table ${table.name} does not match its check`
}
