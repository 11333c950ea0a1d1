import { namesOf } from '../../access/audit/subject-names.ts'
import { type AuditReport, verifyAudit } from '../../access/audit/verify.ts'
import { systemClock } from '../../platform/process/clock.ts'
import type { RemoteApi } from '../remote/api.ts'
import type { Group } from './open.ts'

/** A line of the audit log, and the names of its subjects. */
export type AuditLine = {
  /** As in the chain, with `subject_names` at its end where there are any. */
  readonly json: string
  readonly record: AuditRecord
}

export type AuditRecord = {
  readonly seq: number
  readonly time: string
  readonly actor: { readonly user: string; readonly sudo_user?: string | null }
  readonly action: string
  readonly subjects: readonly string[]
  readonly subject_names?: Readonly<Record<string, string>>
}

export type AuditOperations = {
  /** The newest lines, oldest first. */
  newest(count: number): AsyncIterable<AuditLine>
  /** The lines after a number, oldest first. */
  after(seq: number): AsyncIterable<AuditLine>
  /** Calls back after changes, at once or within a second. */
  follow(onChange: () => void): Promise<AsyncDisposable>
  verify(): Promise<AuditReport>
}

export const audit: Group<AuditOperations> = {
  local({ store }) {
    async function* read(fromSeq: number): AsyncGenerator<AuditLine> {
      for await (const text of store.auditLines(fromSeq)) {
        const record = JSON.parse(text) as AuditRecord
        const names = await namesOf(store, record.subjects)
        const more = Object.keys(names).length === 0 ? '' : `,"subject_names":${JSON.stringify(names)}`
        yield { json: `${text.slice(0, -1)}${more}}`, record: { ...record, subject_names: names } }
      }
    }
    return {
      async *newest(count) {
        yield* read(Math.max(1, (await store.auditHead()).seq - count + 1))
      },
      after: (seq) => read(seq + 1),
      follow: (onChange) => store.follow(onChange),
      verify: () => verifyAudit(store),
    }
  },

  remote(api) {
    return {
      async *newest(count) {
        const lines = await readBack(api, Math.min(count, PAGE_LINES_MAX), (read) => read.length >= count)
        yield* lines.slice(-count)
      },
      async *after(seq) {
        const lines = await readBack(api, NEW_LINES, (read) => (read.at(-1)?.record.seq ?? 0) <= seq + 1)
        yield* lines.filter(({ record }) => record.seq > seq)
      },
      async follow(onChange) {
        const timer = systemClock.setRepeating(FOLLOW_MS, onChange)
        return { [Symbol.asyncDispose]: async () => timer.cancel() }
      },
      verify: () => api.call('auditVerify'),
    }
  },
}

const FOLLOW_MS = 1000
const PAGE_LINES_MAX = 1000
const PAGES_MAX = 1000

/** Lines that are read at once when new ones are looked for: usually there are few. */
const NEW_LINES = 20

/** Reads pages, which begin with the newest line, until there are enough; returns the lines in the order of the log. */
async function readBack(api: RemoteApi, limit: number, isEnough: (read: AuditLine[]) => boolean): Promise<AuditLine[]> {
  const lines: AuditLine[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const query = { limit: String(pages === 0 ? limit : PAGE_LINES_MAX), cursor }
    const page = await api.raw<{ items: AuditRecord[]; next_cursor: string | null }>('audit', { query })
    for (const record of page.items) lines.push({ json: jsonOf(record), record })
    if (page.next_cursor === null || isEnough(lines)) break
    cursor = page.next_cursor
  }
  return lines.toReversed()
}

function jsonOf({ subject_names: names = {}, ...record }: AuditRecord): string {
  return JSON.stringify(Object.keys(names).length === 0 ? record : { ...record, subject_names: names })
}
