import stringWidth from 'string-width'
import { type Line, lineWidth, type Piece, padText, type Tone } from './paint.ts'

export type Cell = { readonly text: string; readonly tone?: Tone }
export type TableColumn = {
  readonly title: string
  readonly align?: 'right'
  /** Minimum width, so that columns do not move when figures grow. */
  readonly widthMin?: number
  /** Shrinks first when the line is too long. */
  readonly flexible?: true
}
export type TableSpec = {
  readonly columns: readonly TableColumn[]
  readonly rows: readonly (readonly Cell[])[]
  readonly width: number
  /** Maximum number of lines, including the title. */
  readonly rowsMax: number
  /** Shown when there are no rows. */
  readonly empty: string
}

const GAP = '  '
const FLEXIBLE_MIN = 8

export function table({ columns, rows, width, rowsMax, empty }: TableSpec): Line[] {
  if (rowsMax <= 0) return []
  const widths = columns.map(({ title, widthMin = 0 }, at) =>
    Math.max(stringWidth(title), widthMin, ...rows.map((row) => stringWidth(row[at]?.text ?? ''))),
  )
  const total = () => widths.reduce((sum, each) => sum + each + GAP.length, -GAP.length)
  const over = total() - width
  const flexible = columns.findIndex((column) => column.flexible === true)
  if (flexible >= 0 && over > 0) widths[flexible] = Math.max(FLEXIBLE_MIN, (widths[flexible] ?? 0) - over)

  const pad = (text: string, at: number): string =>
    padText(text, widths[at] ?? 0, columns[at]?.align === 'right' ? 'right' : 'left')
  const title: Line = columns.flatMap((column, at): Piece[] => [
    ...(at === 0 ? [] : [{ text: GAP }]),
    { text: pad(column.title, at), tone: 'quiet' },
  ])
  if (rows.length === 0) return [title, [{ text: empty, tone: 'quiet' as const }]].slice(0, rowsMax)
  const room = rows.length < rowsMax ? rows.length : Math.max(0, rowsMax - 2)
  const shown = rows
    .slice(0, room)
    .map(
      (row): Line =>
        row.flatMap((cell, at): Piece[] => [
          ...(at === 0 ? [] : [{ text: GAP }]),
          { ...cell, text: pad(cell.text, at) },
        ]),
    )
  const more = rows.length - shown.length
  const rest: Line[] = more > 0 ? [[{ text: `… ${more} more`, tone: 'quiet' }]] : []
  return [title, ...shown, ...rest].slice(0, rowsMax)
}

/** Two blocks side by side; the left one has `leftWidth` columns. */
export function beside(left: readonly Line[], right: readonly Line[], leftWidth: number): Line[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, at): Line => {
    const start = left[at] ?? []
    const blanks = ' '.repeat(Math.max(0, leftWidth - lineWidth(start)))
    return [...start, { text: blanks }, ...(right[at] ?? [])]
  })
}
