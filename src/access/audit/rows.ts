import type { SqlReader, SqlWriter } from '../../platform/db/sql.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import type { AuditPage, AuditPageRequest } from '../store/store.ts'
import type { AuditLine } from './line.ts'

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
/** Lines that a page looks at to find those of a subject or an action. */
const PAGE_LINES_MAX = 200_000

export async function readAuditPage(on: SqlReader, request: AuditPageRequest): Promise<AuditPage> {
  const { before, limit } = request
  const slices = createTimeSlices()
  const only = selectionOf(request)
  const found: { readonly seq: number; readonly line: string }[] = []
  let end = before ?? Number.MAX_SAFE_INTEGER
  for (let read = 0; read < PAGE_LINES_MAX; read += SLICE_LINES) {
    const [first] = await on.rows('SELECT seq FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1', [end])
    if (first === undefined) return { lines: found.map(({ line }) => line), next: null }
    const start = Math.max(0, Number(first[0]) + 1 - SLICE_LINES)
    const rows = await on.rows(
      `SELECT seq, line FROM audit WHERE seq < ? AND seq >= ? ${only.sql} ORDER BY seq DESC LIMIT ?`,
      [end, start, ...only.patterns, limit + 1],
    )
    for (const [seq, line] of rows) {
      if (only.sql !== '' && !isSelected(String(line), request)) continue
      if (found.length === limit) return { lines: found.map((each) => each.line), next: found.at(-1)?.seq ?? null }
      found.push({ seq: Number(seq), line: String(line) })
    }
    // A statement that reached its limit has more lines in this slice.
    end = rows.length > limit ? Number(rows.at(-1)?.[0]) : start
    if (slices.isSpent()) await slices.yield()
  }
  return { lines: found.map(({ line }) => line), next: end }
}

/**
 * An id or an action has no character that JSON escapes, and is between quotes. LIKE only selects: the parsed line is compared, since another part of
 * it may have the same text.
 */
function selectionOf({ subject, actions }: AuditPageRequest): { readonly sql: string; readonly patterns: string[] } {
  const escaped = (text: string): string => text.replaceAll(/[!%_]/g, '!$&')
  const ofSubject = subject === undefined ? [] : [`%"${escaped(subject)}"%`]
  const ofActions = (actions ?? []).map((action) => `%"action":"${escaped(action)}"%`)
  const oneOf = (patterns: readonly string[]): string =>
    patterns.length === 0 ? '' : `AND (${patterns.map(() => "line LIKE ? ESCAPE '!'").join(' OR ')})`
  return { sql: `${oneOf(ofSubject)} ${oneOf(ofActions)}`.trim(), patterns: [...ofSubject, ...ofActions] }
}

function isSelected(text: string, { subject, actions }: AuditPageRequest): boolean {
  const line = JSON.parse(text) as Pick<AuditLine, 'action' | 'subjects'>
  if (subject !== undefined && !line.subjects.includes(subject)) return false
  return actions === undefined || actions.includes(line.action)
}
