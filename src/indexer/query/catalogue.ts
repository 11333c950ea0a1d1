import { type CatalogueRows, readShow } from '../catalogue/show.ts'
import { readSettings } from '../session/settings.ts'
import { resultTooLarge } from './error.ts'
import { createFormatter, formatNamed } from './formats.ts'
import type { QueryLimits, QueryRequest } from './request.ts'
import type { QueryResult } from './result.ts'
import type { Statement } from './statement.ts'

/** The formatted result of SHOW, DESCRIBE and EXISTS without an engine; undefined for every other statement. */
export function catalogueResult(
  statement: Statement,
  request: Pick<QueryRequest, 'defaultFormat' | 'settings'> & { readonly database: string },
  limits: Pick<QueryLimits, 'bytesMax'>,
  coverageSlot: number,
): QueryResult | undefined {
  const found = readShow(statement.tokens, { ...request, hasCatalogue: false })
  return found && resultOf(found, statement, request, limits, coverageSlot)
}

/** A result without columns, as SET and USE have it. */
export const NO_ROWS: CatalogueRows = { columns: [], rows: [] }

/** A result that is complete in memory. */
export function resultOf(
  found: CatalogueRows,
  statement: Statement,
  request: Pick<QueryRequest, 'defaultFormat' | 'settings'>,
  { bytesMax }: Pick<QueryLimits, 'bytesMax'>,
  coverageSlot: number,
): QueryResult {
  const { quote64 } = readSettings([...Object.entries(request.settings), ...statement.settings])
  const { name: format, contentType } = formatNamed(statement.format ?? request.defaultFormat)
  const types = found.columns.map(({ type }) => type)
  const formatter = createFormatter(found.columns, types, { format, quote64 })
  const rows = found.rows.map((values) => formatter.row(values)).join('')
  const tail = formatter.tail({ elapsedSeconds: 0, rowsRead: formatter.rows, bytesRead: 0 })
  const body = found === NO_ROWS ? Buffer.alloc(0) : Buffer.from(formatter.head() + rows + tail)
  if (body.length > bytesMax) throw resultTooLarge(bytesMax)
  return {
    format,
    contentType,
    rows: formatter.rows,
    elapsedSeconds: 0,
    coverageSlot,
    bytes: body.length,
    async *parts() {
      yield body
    },
    [Symbol.dispose]() {},
  }
}
