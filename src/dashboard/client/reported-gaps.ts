import type { Warning } from '../../contract/stream-events.ts'

/** Above this number the oldest are forgotten, and reported again after a resume: a source without blocks may lose events for days. */
const REPORTED_MAX = 1000

/**
 * Warnings about the source since the cursor. They have no cursor of their own, so a resumed connection repeats them, in their order and
 * before any later frame.
 */
export class ReportedGaps {
  #sinceCursor: string[] = []
  /** Those that the resumed connection has not repeated yet. */
  #unrepeated: string[] = []

  /** The cursor has advanced: a resume repeats none of them. */
  clear(): void {
    if (this.#sinceCursor.length === 0) return
    this.#sinceCursor = []
    this.#unrepeated = []
  }

  /** A connection has begun. */
  connected({ isResumed }: { isResumed: boolean }): void {
    this.#unrepeated = isResumed ? [...this.#sinceCursor] : []
  }

  /** Adds a warning; false when it is a repetition. */
  add(warning: Warning): boolean {
    const text = JSON.stringify(warning)
    const at = this.#unrepeated.indexOf(text)
    if (at >= 0) {
      this.#unrepeated.splice(0, at + 1)
      return false
    }
    this.#sinceCursor.push(text)
    if (this.#sinceCursor.length > REPORTED_MAX) this.#sinceCursor.shift()
    return true
  }
}
