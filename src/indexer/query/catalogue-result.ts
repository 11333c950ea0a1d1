import { type CatalogueRows, readShow } from '../catalogue/show.ts'
import { typedColumn } from '../formats/column-type.ts'
import { createResultWriter, formatNamed } from '../formats/formats.ts'
import { readSettings } from '../session/settings.ts'
import { catalogueChunk } from './catalogue-chunk.ts'
import { resultTooLarge } from './error.ts'
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
  const found = readShow(statement.tokens, { ...request })
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
  const body = found === NO_ROWS ? Buffer.alloc(0) : writeRows(found, { format, quote64 })
  if (body.length > bytesMax) throw resultTooLarge(bytesMax)
  return {
    format,
    contentType,
    coverageSlot,
    end: { rows: found.rows.length, bytes: body.length, elapsedSeconds: 0 },
    async *parts() {
      yield body
    },
    [Symbol.dispose]() {},
  }
}

function writeRows(found: CatalogueRows, options: { readonly format: string; readonly quote64: boolean }): Buffer {
  const { columns, chunk } = catalogueChunk(found)
  const engineTypes = columns.map(({ engine }) => engine)
  const writer = createResultWriter(columns.map(typedColumn), engineTypes, options)
  const statistics = { elapsedSeconds: 0, rowsRead: chunk.rowCount, bytesRead: 0 }
  const pieces = [...writer.head(), ...writer.rows(chunk), ...writer.tail(statistics)]
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece ?? '')))
}
