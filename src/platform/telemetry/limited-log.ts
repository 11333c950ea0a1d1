import type { Clock } from '../../core/clock.ts'

/** Shortest time between two lines of one kind about one subject. */
const LINE_MS = 60_000
/** Subjects with lines of their own within that time; the lines about all others are limited together. */
const SUBJECTS_MAX = 32

/**
 * A log line that each failing request would write: at most one a minute about each subject, such as a node, with how many were left out since the last
 * one.
 */
export type LimitedLog = (write: (fields: { readonly suppressed?: number }) => void, subject?: string) => void

type Lines = { lastMs: number; suppressed: number }

/** For lines of one kind. */
export function createLimitedLog(clock: Pick<Clock, 'monotonicMs'>): LimitedLog {
  const ofSubjects = new Map<string, Lines>()
  const ofOthers: Lines = { lastMs: Number.NEGATIVE_INFINITY, suppressed: 0 }

  function linesOf(subject: string, nowMs: number): Lines {
    const known = ofSubjects.get(subject)
    if (known !== undefined) return known
    if (ofSubjects.size >= SUBJECTS_MAX)
      for (const [name, { lastMs }] of ofSubjects) if (nowMs - lastMs >= LINE_MS) ofSubjects.delete(name)
    if (ofSubjects.size >= SUBJECTS_MAX) return ofOthers
    const lines = { lastMs: Number.NEGATIVE_INFINITY, suppressed: 0 }
    ofSubjects.set(subject, lines)
    return lines
  }

  return (write, subject = '') => {
    const nowMs = clock.monotonicMs()
    const lines = linesOf(subject, nowMs)
    if (nowMs - lines.lastMs < LINE_MS) {
      lines.suppressed += 1
      return
    }
    const left = lines.suppressed === 0 ? {} : { suppressed: lines.suppressed }
    lines.lastMs = nowMs
    lines.suppressed = 0
    write(left)
  }
}
