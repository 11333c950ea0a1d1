import { QueryError } from '../query/error.ts'
import { cellTexts, ITEMS_PER_STEP, leafCount, pausingCellText, type TextStyle } from './cell-text.ts'
import { metaOf, statisticsOf, type TextOptions } from './text-formats.ts'
import type { TypedColumn } from './value-type.ts'
import type { BatchFormat } from './writer.ts'

/** These formats have the first column complete before the second one begins, so the whole result is held in memory. */
const COLUMNS_BYTES_MAX = 16 * 1024 * 1024

const STEP = 64

/** JSONColumns (`names`), JSONCompactColumns (`none`) and JSONColumnsWithMetadata (`metadata`). */
export function jsonColumns(
  columns: readonly TypedColumn[],
  { form, ...options }: TextOptions & { readonly form: 'names' | 'none' | 'metadata' },
): BatchFormat {
  const texts = columns.map((): string[] => [])
  let bytes = 0
  let rows = 0
  return {
    *batch(batches, rowCount) {
      rows += rowCount
      for (const [at, batch] of batches.entries()) {
        const style: TextStyle = { kind: 'json', ...options }
        const print = cellTexts(batch, style)
        for (let row = 0; row < rowCount; row++) {
          const isLong = leafCount(batch, row, row + 1) > ITEMS_PER_STEP
          const text = isLong ? yield* pausingCellText(batch, style, row) : print(row)
          bytes += text.length + 1
          texts[at]?.push(text)
          if (row % STEP === 0) yield undefined
        }
        if (bytes > COLUMNS_BYTES_MAX)
          throw new QueryError(
            'TOO_MANY_BYTES',
            `Limit for result exceeded: a result by columns has at most ${COLUMNS_BYTES_MAX} bytes. Use JSONEachRow, or add LIMIT.`,
          )
      }
    },
    *tail(statistics) {
      const [open, close] = form === 'none' ? ['[', ']'] : ['{', '}']
      yield form === 'metadata' ? `{"meta":[${metaOf(columns)}],"data":${open}` : open
      for (const [at, { name }] of columns.entries()) {
        const prefix = form === 'none' ? '' : `${JSON.stringify(name)}:`
        yield `${at === 0 ? '' : ','}${prefix}[`
        const all = texts[at] ?? []
        for (let from = 0; from < all.length; from += STEP)
          yield `${from === 0 ? '' : ','}${all.slice(from, from + STEP).join(',')}`
        yield ']'
      }
      yield close
      yield form === 'metadata' ? `,"rows":${rows},"statistics":${statisticsOf(statistics)}}\n` : '\n'
    },
  }
}
