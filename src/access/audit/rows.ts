import type { SqlReader, SqlWriter } from '../../platform/db/sql.ts'

/** The chain in the store. It has no row check: the hash of each line is in the next line, and that of the last one in `meta`. */
export const CREATE_AUDIT = ['CREATE TABLE audit (seq BIGINT NOT NULL, line TEXT NOT NULL, PRIMARY KEY (seq))']

export async function insertAuditLine(tx: SqlWriter, seq: number, line: string): Promise<void> {
  await tx.run('INSERT INTO audit (seq, line) VALUES (?, ?)', [seq, line])
}

/** Lines of the chain from this number on. */
export async function* readAuditLines(on: SqlReader, fromSeq: number): AsyncGenerator<string> {
  for await (const page of on.pages('SELECT line FROM audit WHERE seq >= ? ORDER BY seq', [fromSeq])) {
    for (const [line] of page) yield String(line)
  }
}
