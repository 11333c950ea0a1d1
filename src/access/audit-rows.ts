import type { SqlReader } from '../host/sql.ts'
import type { TableRows } from './rows.ts'
import { AUDIT_TABLE } from './tables.ts'

/** Lines of the chain from a number on, as they stand: what is wrong with one shows in the chain, and must not keep others from being read. */
export async function* readAuditLines(on: SqlReader, rows: TableRows, fromSeq: number): AsyncGenerator<string> {
  for await (const page of on.pages(rows(AUDIT_TABLE).select('WHERE seq >= ? ORDER BY seq'), [fromSeq])) {
    for (const [, line] of page) yield String(line)
  }
}
