import type { Column } from '../../src/indexer/schema.ts'

/** A row as text, the same whether it comes from the writer or back from the server as JSONCompact. */
export function clickHouseRowText(columns: readonly (Column | undefined)[], row: readonly unknown[]): string {
  return JSON.stringify(
    row.map((value, at) => {
      const type = columns[at]?.type
      if (type === 'time' && typeof value === 'string') return String(Date.parse(`${value.replace(' ', 'T')}Z`) / 1000)
      if (type === 'bool') return Number(value)
      return Array.isArray(value) ? value : String(value)
    }),
  )
}
