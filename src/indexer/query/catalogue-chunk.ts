import type { DuckColumnValues, DuckType } from '../../platform/db/duckdb-column.ts'
import type { DuckChunk } from '../../platform/db/duckdb-stream.ts'
import type { CatalogueRows } from '../catalogue/show.ts'
import type { ResultColumn } from '../formats/column-type.ts'

/** Rows that need no engine, as the engine would give them: texts, and numbers of one byte. */
export function catalogueChunk({ columns, rows }: CatalogueRows): {
  readonly columns: readonly ResultColumn[]
  readonly chunk: DuckChunk
} {
  return {
    columns: columns.map((column, at) => {
      const hasNull = rows.some((row) => row[at] === null)
      return column.type === 'VARCHAR'
        ? { name: column.name, type: hasNull ? 'Nullable(String)' : 'String', engine: TEXT }
        : { name: column.name, type: 'UInt8', engine: BYTE }
    }),
    chunk: {
      rowCount: rows.length,
      row: (at) => rows[at] ?? [],
      column: (at) => columnValues(rows.map((row) => row[at])),
    },
  }
}

const TEXT: DuckType = { kind: 'text', name: 'VARCHAR' }
const BYTE: DuckType = { kind: 'fixed', name: 'UTINYINT', width: 1 }

function columnValues(values: readonly unknown[]): DuckColumnValues {
  const own: DuckColumnValues = {
    mayHaveNulls: values.includes(null),
    isNull: (at) => values[at] === null,
    bytes: Uint8Array.from(values, Number),
    text: (at) => Buffer.from(String(values[at])),
    start: () => 0,
    length: () => 0,
    get items() {
      return own
    },
    field: () => own,
    value: (at) => values[at],
  }
  return own
}
