import { pausingCellText, type TextStyle } from './cell-text.ts'
import type { ColumnBatch } from './column-batch.ts'
import { isRightAligned, NULL_SIGN, type TextOptions } from './text-formats.ts'
import type { TypedColumn } from './value-type.ts'
import type { BatchFormat } from './writer.ts'

/** Lines of a table. ClickHouse draws `Pretty` with a line between any two rows, `PrettyCompact` only below the names. */
const STEP = 64
/** A longer value is cut and marked, as ClickHouse does. */
const VALUE_CHARS_MAX = 10_000

/** A table for people. Columns are as wide as their widest value among the rows of a batch; each batch is a table of its own. */
export function pretty(columns: readonly TypedColumn[], form: 'full' | 'compact', { times }: TextOptions): BatchFormat {
  return {
    *batch(batches, rowCount) {
      const rows: string[][] = []
      for (let at = 0; at < rowCount; at++) {
        const row: string[] = []
        for (const batch of batches) row.push(yield* cellText(batch, at, { kind: 'text', times }))
        rows.push(row)
        if (at % STEP === 0) yield undefined
      }
      const widths = columns.map(({ name }, at) =>
        rows.reduce((width, row) => Math.max(width, widthOf(row[at] ?? '')), widthOf(name)),
      )
      yield undefined
      const line = (left: string, cross: string, right: string, stroke: string): string =>
        `${left}${widths.map((width) => stroke.repeat(width + 2)).join(cross)}${right}\n`
      const cells = (texts: readonly string[], bar: string): string =>
        `${bar}${texts.map((text, at) => ` ${padded(text, widths[at] ?? 0, columns[at])} `).join(bar)}${bar}\n`
      if (form === 'full') {
        yield line('┏', '┳', '┓', '━')
        yield cells(
          columns.map(({ name }) => name),
          '┃',
        )
        yield line('┡', '╇', '┩', '━')
      } else yield compactHead(columns, widths)
      for (const [at, row] of rows.entries()) {
        if (form === 'full' && at > 0) yield line('├', '┼', '┤', '─')
        yield cells(row, '│')
      }
      yield line('└', '┴', '┘', '─')
    },
  }
}

/** A line break inside of a value would break the table. */
function* cellText(batch: ColumnBatch, at: number, style: TextStyle): Generator<undefined, string> {
  if (batch.type.isNullable && batch.nulls.byteAt(at) === 1) return NULL_SIGN
  const text = yield* pausingCellText(batch, style, at, VALUE_CHARS_MAX + 1)
  const shown = text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}⋯` : text
  return shown.replaceAll('\n', '⏎').replaceAll('\t', ' ')
}

/** The names are inside of the upper line, on the side to which the values are aligned. */
function compactHead(columns: readonly TypedColumn[], widths: readonly number[]): string {
  const parts = columns.map(({ name, type }, at) => {
    const rest = '─'.repeat((widths[at] ?? 0) - widthOf(name))
    return isRightAligned(type) ? `─${rest}${name}─` : `─${name}${rest}─`
  })
  return `┌${parts.join('┬')}┐\n`
}

function padded(text: string, width: number, column: TypedColumn | undefined): string {
  const spaces = ' '.repeat(Math.max(0, width - widthOf(text)))
  return column !== undefined && isRightAligned(column.type) ? spaces + text : text + spaces
}

/** Characters, not UTF-16 units. */
function widthOf(text: string): number {
  let width = 0
  for (const _ of text) width++
  return width
}
