import type { Column } from '../../../src/indexer/schema.ts'

/** A row as text, the same whether it comes from the writer, from the embedded database or from ClickHouse as JSONCompact. */
export function indexedRowText(columns: readonly (Column | undefined)[], row: readonly unknown[]): string {
  return JSON.stringify(
    row.map((value, at) => {
      const type = columns[at]?.type
      if (type === 'time' && typeof value === 'string') return String(Date.parse(`${value.replace(' ', 'T')}Z`) / 1000)
      if (type === 'bool') return Number(value)
      if (Array.isArray(value)) return value
      // The embedded engine's library returns objects for times and lists.
      if (typeof value === 'object' && value !== null && 'seconds' in value) return String(value.seconds)
      if (typeof value === 'object' && value !== null && 'items' in value) return value.items
      return String(value)
    }),
  )
}
