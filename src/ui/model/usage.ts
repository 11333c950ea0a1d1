/** A line of a usage report, as the admin API and the account endpoints give it. */
export type UsageLine = {
  /** Lines of the admin API have `from`, those of the account endpoints `day`. */
  readonly from?: string
  readonly day?: string
  readonly interface: string
  readonly method?: string
  readonly calls: number
  readonly units: number
  readonly refused: number
  readonly bytes?: number
  readonly bytes_out?: number
}

export type UsageSum = {
  readonly name: string
  readonly calls: number
  readonly units: number
  readonly refused: number
  readonly bytes: number
}

/** Sums by what `nameOf` gives, the largest use first. */
export function sumUsage<Line extends UsageLine>(rows: readonly Line[], nameOf: (row: Line) => string): UsageSum[] {
  const sums = new Map<string, UsageSum>()
  for (const row of rows) {
    const name = nameOf(row)
    const sum = sums.get(name) ?? { name, calls: 0, units: 0, refused: 0, bytes: 0 }
    sums.set(name, {
      name,
      calls: sum.calls + row.calls,
      units: sum.units + row.units,
      refused: sum.refused + row.refused,
      bytes: sum.bytes + (row.bytes_out ?? row.bytes ?? 0),
    })
  }
  return [...sums.values()].toSorted((a, b) => b.units - a.units || b.calls - a.calls || (a.name < b.name ? -1 : 1))
}

/** Whether bytes were counted: an older process does not count them. */
export function hasBytes(rows: readonly UsageLine[]): boolean {
  return rows.some(({ bytes, bytes_out }) => (bytes ?? bytes_out) !== undefined)
}

export function totalOf(rows: readonly UsageLine[]): UsageSum {
  return sumUsage(rows, () => 'total')[0] ?? { name: 'total', calls: 0, units: 0, refused: 0, bytes: 0 }
}

/** One bar of a chart, of parts that have a colour each. */
export type Bar = {
  readonly label: string
  readonly parts: readonly { readonly name: string; readonly value: number }[]
}

/** Units by day and interface; a day without usage is an empty bar. */
export function barsByDay(rows: readonly UsageLine[], days: readonly string[]): Bar[] {
  const interfaces = interfacesOf(rows)
  const units = new Map<string, number>()
  for (const row of rows) {
    const key = `${(row.day ?? row.from ?? '').slice(0, 10)} ${row.interface}`
    units.set(key, (units.get(key) ?? 0) + row.units)
  }
  return days.map((day) => ({
    label: day,
    parts: interfaces.map((name) => ({ name, value: units.get(`${day} ${name}`) ?? 0 })),
  }))
}

const INTERFACES = ['rpc', 'ws', 'grpc', 'indexer', 'shreds'] as const
const INTERFACE_LABELS: Readonly<Record<string, string>> = {
  rpc: 'RPC',
  ws: 'WebSocket',
  grpc: 'gRPC',
  indexer: 'SQL',
  shreds: 'Shreds',
}

export function interfaceLabel(name: string): string {
  return INTERFACE_LABELS[name] ?? name
}

/** The interfaces that occur, always in the same order, so that each keeps its colour. */
function interfacesOf(rows: readonly UsageLine[]): string[] {
  const present = new Set<string>(rows.map((row) => row.interface))
  const known = INTERFACES.filter((name) => present.has(name))
  return [...known, ...[...present].filter((name) => !INTERFACES.some((one) => one === name)).toSorted()]
}
