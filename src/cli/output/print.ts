import { stringify as stringifyCsv } from 'csv-stringify/sync'
import stringWidth from 'string-width'
import { type FormerFields, isoTime, toWireJson } from '../../contract/wire-json.ts'
import { printTime } from '../dates.ts'
import type { CliContext, OutputFormat } from '../define.ts'
import { sanitizeForTerminal } from './plain-text.ts'
import { terminalColumns } from './terminal.ts'

/** A column of a list. `wide` columns appear with `-o wide`; JSON and CSV have all columns. */
export type Column<Row> = {
  readonly title: string
  /** Its key in JSON and CSV, if that is not the title in lower case. */
  readonly wire?: string
  /** Its former key. JSON has both until 0.2, CSV a second column after all others. */
  readonly former?: string
  readonly value: (row: Row) => string | number | boolean | null | undefined | readonly string[]
  readonly wide?: true
  /** The cell text in tables, if it differs from the value. */
  readonly show?: (row: Row) => string
}

/** Start of the hour, day or period of a row. */
export const FROM_COLUMN: Column<{ readonly hour: number }> = {
  title: 'FROM',
  value: ({ hour }) => isoTime(hour),
  show: ({ hour }) => printTime(hour),
}

/** The key of a column in JSON and CSV: `VALID UNTIL` is `valid_until`. */
const wireName = ({ title, wire }: Pick<Column<never>, 'title' | 'wire'>): string =>
  wire ?? title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')

export function printList<Row>(
  context: CliContext,
  flags: { readonly json?: boolean; readonly output?: OutputFormat },
  list: {
    readonly rows: readonly Row[]
    readonly columns: readonly Column<Row>[]
    readonly empty: string
    /** The header is already printed: these rows continue the list. */
    readonly isContinued?: boolean
  },
): void {
  const { rows, columns, isContinued = false } = list
  const wireColumns = [
    ...columns,
    ...columns.flatMap((column) => (column.former ? [{ ...column, wire: column.former }] : [])),
  ]
  const format = flags.json === true ? 'json' : (flags.output ?? 'table')
  if (format === 'json') {
    printJson(
      context,
      rows.map((row) => Object.fromEntries(wireColumns.map((column) => [wireName(column), column.value(row) ?? null]))),
    )
  } else if (format === 'csv') {
    const lines = rows.map((row) => wireColumns.map((column) => csvText(column.value(row))))
    const header = wireColumns.map((column) => wireName(column))
    context.process.stdout.write(stringifyCsv(isContinued ? lines : [header, ...lines], { escape_formulas: true }))
  } else if (rows.length === 0) {
    context.process.stderr.write(`${list.empty}\n`)
  } else {
    const shown = columns.filter((column) => format === 'wide' || column.wide !== true)
    const cells = rows.map((row) =>
      shown.map((column) => sanitizeForTerminal(column.show?.(row) ?? cellText(column.value(row)))),
    )
    const table = alignColumns([shown.map((column) => column.title), ...cells], terminalColumns(context.process.stdout))
    context.process.stdout.write(isContinued ? table.slice(table.indexOf('\n') + 1) : table)
  }
}

/** For records whose message had another name. */
export const FORMER_MESSAGE: FormerFields = { message: 'says' }

export function printJson(context: CliContext, value: unknown, former?: FormerFields): void {
  context.process.stdout.write(`${JSON.stringify(toWireJson(value, former), null, 2)}\n`)
}

/** Prints label and value pairs, one per line. */
export function printFacts(
  context: CliContext,
  facts: readonly (readonly [string, string | number | null | undefined])[],
): void {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== '')
  context.process.stdout.write(alignColumns(shown.map(([label, value]) => [label, sanitizeForTerminal(String(value))])))
}

/** Writes a message to standard error; standard output is for data. */
export function write(context: CliContext, sentence: string): void {
  context.process.stderr.write(`${sanitizeForTerminal(sentence)}\n`)
}

function cellText(value: ReturnType<Column<never>['value']>): string {
  if (value === null || value === undefined) return '-'
  return Array.isArray(value) ? value.join(',') : String(value)
}

function csvText(value: ReturnType<Column<never>['value']>): string | number {
  if (value === null || value === undefined) return ''
  return typeof value === 'number' ? value : Array.isArray(value) ? value.join(' ') : String(value)
}

/** Aligns rows in columns. With a width, the widest cells are cut with an ellipsis until each line fits. */
export function alignColumns(lines: readonly (readonly string[])[], widthMax = Number.POSITIVE_INFINITY): string {
  const widths: number[] = []
  for (const line of lines) {
    line.forEach((cell, at) => {
      widths[at] = Math.max(widths[at] ?? 0, stringWidth(cell))
    })
  }
  const total = () => widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length)
  while (total() > widthMax && Math.max(...widths) > CELL_WIDTH_MIN) {
    const widest = widths.indexOf(Math.max(...widths))
    widths[widest] = (widths[widest] as number) - 1
  }
  const padded = lines.map((line) =>
    line
      .map((cell, at) => cut(cell, widths[at] as number))
      .map((cell, at) => cell + ' '.repeat((widths[at] as number) - stringWidth(cell)))
      .join(GAP)
      .trimEnd(),
  )
  return padded.map((line) => `${line}\n`).join('')
}

const GAP = '  '
const CELL_WIDTH_MIN = 6

function cut(cell: string, width: number): string {
  if (stringWidth(cell) <= width) return cell
  let kept = ''
  for (const character of cell) {
    if (stringWidth(kept + character) > width - 1) break
    kept += character
  }
  return `${kept}…`
}
