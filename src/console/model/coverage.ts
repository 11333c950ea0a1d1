export type CoverageRow = {
  readonly table: string
  readonly from: string
  readonly to: string
  readonly lag: string
  readonly gaps: string
}

/** Coverage as objects, or as the tab-separated lines with a header that `sluice indexer status --json` prints. */
export function coverageRows(coverage: readonly unknown[]): CoverageRow[] {
  const [header] = coverage
  const names = typeof header === 'string' ? header.split('\t') : undefined
  const lines = names === undefined ? coverage : coverage.slice(1)
  return lines.flatMap((line): CoverageRow[] => {
    const fields: Record<string, unknown> =
      typeof line === 'string'
        ? Object.fromEntries(line.split('\t').map((value, at) => [names?.[at] ?? '', value]))
        : typeof line === 'object' && line !== null
          ? (line as Record<string, unknown>)
          : {}
    const text = (name: string): string => {
      const value = fields[name]
      return typeof value === 'string' || typeof value === 'number' ? String(value) : '–'
    }
    if (fields['table_name'] === undefined) return []
    return [
      {
        table: text('table_name'),
        from: text('from_slot'),
        to: text('to_slot'),
        lag: text('lag_slots'),
        gaps: text('open_gaps'),
      },
    ]
  })
}
