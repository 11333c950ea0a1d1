import type { SqlReader, SqlWriter } from '../../platform/db/sql.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import type { AuditPage, AuditPageRequest } from '../store/store.ts'

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

/** Lines that one statement looks at. */
const SLICE_LINES = 2000
/** Lines that a page looks at to find those of a subject. */
const PAGE_LINES_MAX = 200_000

export async function readAuditPage(on: SqlReader, { before, limit, subject }: AuditPageRequest): Promise<AuditPage> {
  const slices = createTimeSlices()
  // An id has no character that JSON escapes, and is between quotes. LIKE only selects: the subjects themselves are compared.
  const only = subject === undefined ? '' : "AND line LIKE ? ESCAPE '!'"
  const pattern = subject === undefined ? [] : [`%"${subject.replaceAll(/[!%_]/g, '!$&')}"%`]
  const found: { readonly seq: number; readonly line: string }[] = []
  let end = before ?? Number.MAX_SAFE_INTEGER
  for (let read = 0; read < PAGE_LINES_MAX; read += SLICE_LINES) {
    const [first] = await on.rows('SELECT seq FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1', [end])
    if (first === undefined) return { lines: found.map(({ line }) => line), next: null }
    const start = Math.max(0, Number(first[0]) + 1 - SLICE_LINES)
    const rows = await on.rows(
      `SELECT seq, line FROM audit WHERE seq < ? AND seq >= ? ${only} ORDER BY seq DESC LIMIT ?`,
      [end, start, ...pattern, limit + 1],
    )
    for (const [seq, line] of rows) {
      if (subject !== undefined && !hasSubject(String(line), subject)) continue
      if (found.length === limit) return { lines: found.map((each) => each.line), next: found.at(-1)?.seq ?? null }
      found.push({ seq: Number(seq), line: String(line) })
    }
    // A statement that reached its limit has more lines in this slice.
    end = rows.length > limit ? Number(rows.at(-1)?.[0]) : start
    if (slices.isSpent()) await slices.yield()
  }
  return { lines: found.map(({ line }) => line), next: end }
}

function hasSubject(line: string, subject: string): boolean {
  return (JSON.parse(line) as { subjects: readonly string[] }).subjects.includes(subject)
}
