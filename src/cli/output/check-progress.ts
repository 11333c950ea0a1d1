/** Rows of a table between two updates; a smaller table is checked at once. */
const PROGRESS_ROWS = 100_000
const CLEAR_LINE = '\r\u001B[K'

/** Cleared at its end. */
export type CheckProgress = Disposable & { update(table: string, rows: number): void }

/** The history of usage may take minutes to read: on a terminal, one line with the rows that are checked, rewritten. */
export function showCheckProgress(terminal: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>): CheckProgress {
  let shown = ''
  return {
    update(table, rows) {
      const steps = Math.floor(rows / PROGRESS_ROWS)
      const next = `${table}: ${steps * PROGRESS_ROWS} rows checked`
      if (!terminal.isTTY || steps === 0 || next === shown) return
      shown = next
      terminal.write(`${CLEAR_LINE}${next}`)
    },
    [Symbol.dispose]() {
      if (shown !== '') terminal.write(CLEAR_LINE)
    },
  }
}
