import {
  type CellText,
  cellTexts,
  escaped,
  ITEMS_PER_STEP,
  leafCount,
  longCellText,
  type TextStyle,
} from './cell-text.ts'
import type { ColumnBatch } from './column-batch.ts'
import type { TypedColumn, ValueType } from './value-type.ts'
import type { BatchFormat, QueryStatistics } from './writer.ts'

/** A row-wise text format. A row is `open`, its cells with `separator` between them, and `close`. */
export type TextFormat = {
  readonly open: string
  readonly separator: string
  readonly close: string
  /** Between two rows. */
  readonly between?: string
  /** Before each cell, such as the name of the column. */
  prefix?(column: TypedColumn): string
  suffix?(column: TypedColumn): string
  readonly style: TextStyle
  /** A cell that is NULL; without it as the style prints it. */
  readonly nullText?: string
  /** What becomes of the text of a cell; it may get the text in pieces. `isText` is false for numbers. */
  transform?(text: string, type: ValueType): string
  /** Around the transformed text. */
  readonly around?: (type: ValueType) => string
  /** Whether the fields of a tuple are cells of their own. */
  readonly areTuplesSplit?: boolean
  head?(): string
  /** Before the row of WITH TOTALS; a format without it has no such row. */
  readonly beforeTotals?: string
  tail?(rows: number, statistics: QueryStatistics, hasTotals: boolean): string
}

const PIECE_CHARS = 32 * 1024

export function textRows(columns: readonly TypedColumn[], format: TextFormat): BatchFormat {
  const { separator, close, between = '' } = format
  const cellColumns = format.areTuplesSplit ? columns.flatMap(splitColumn) : columns
  const frames = cellColumns.map((column) => ({
    prefix: format.prefix?.(column) ?? '',
    around: format.around?.(column.type) ?? '',
    suffix: format.suffix?.(column) ?? '',
  }))
  let rows = 0

  /** A row with a long list, in pieces. */
  function* longRow(batches: readonly ColumnBatch[], row: number): Generator<string> {
    yield format.open
    for (const [at, batch] of batches.entries()) {
      if (at > 0) yield separator
      yield* longCell(batch, format, frames[at] as Frame, row)
    }
    yield close
  }

  return {
    *head() {
      yield format.head?.() ?? ''
    },
    *batch(given, rowCount) {
      const batches = format.areTuplesSplit ? given.flatMap(splitBatch) : given
      const cells = batches.map((batch, at) => cellPrinter(batch, format, frames[at] as Frame))
      const lists = batches.filter(({ parts }) => parts.length > 0)
      let text = ''
      for (let row = 0; row < rowCount; row++) {
        if (rows++ > 0) text += between
        if (lists.some((batch) => leafCount(batch, row, row + 1) > ITEMS_PER_STEP)) {
          yield text
          text = ''
          yield* longRow(batches, row)
          continue
        }
        text += format.open
        for (let at = 0; at < cells.length; at++) text += at === 0 ? cells[at]?.(row) : separator + cells[at]?.(row)
        text += close
        if (text.length >= PIECE_CHARS) {
          yield text
          text = ''
        } else if ((row & 31) === 0) yield undefined
      }
      yield text
    },
    *tail(statistics, totals) {
      const hasTotals = totals !== undefined && format.beforeTotals !== undefined
      if (hasTotals) {
        yield format.beforeTotals
        yield* longRow(format.areTuplesSplit ? totals.flatMap(splitBatch) : totals, 0)
      }
      yield format.tail?.(rows, statistics, hasTotals) ?? ''
    },
  }
}

function splitColumn({ name, type }: TypedColumn): readonly TypedColumn[] {
  return type.kind === 'tuple'
    ? type.fields.flatMap((field) => splitColumn({ name, type: field.type }))
    : [{ name, type }]
}

function splitBatch(batch: ColumnBatch): readonly ColumnBatch[] {
  return batch.type.kind === 'tuple' ? batch.parts.flatMap(splitBatch) : [batch]
}

type Frame = { readonly prefix: string; readonly around: string; readonly suffix: string }

function cellPrinter(batch: ColumnBatch, format: TextFormat, { prefix, around, suffix }: Frame): CellText {
  const { type } = batch
  const { transform, nullText } = format
  const print = cellTexts(batch, format.style)
  const before = prefix + around
  const after = around + suffix
  const whole: CellText =
    transform === undefined ? (at) => before + print(at) + after : (at) => before + transform(print(at), type) + after
  if (!type.isNullable || nullText === undefined) return whole
  const nulls = batch.nulls.view()
  return (at) => (nulls[at] === 1 ? prefix + nullText + suffix : whole(at))
}

/** A cell in pieces. A list is never NULL. */
function* longCell(batch: ColumnBatch, format: TextFormat, frame: Frame, at: number): Generator<string> {
  if (leafCount(batch, at, at + 1) <= ITEMS_PER_STEP) {
    yield cellPrinter(batch, format, frame)(at)
    return
  }
  let text = frame.prefix + frame.around
  for (const piece of longCellText(batch, format.style, at)) {
    text += format.transform?.(piece, batch.type) ?? piece
    if (text.length < PIECE_CHARS) continue
    yield text
    text = ''
  }
  yield text + frame.around + frame.suffix
}

/** Escapes a text for the tab-separated formats. Lists and tuples are escaped where they are printed. */
export function tabEscaped(text: string, { kind }: ValueType): string {
  return kind === 'text' ? escaped(text) : text
}
