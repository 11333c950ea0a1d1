import { formatCompact } from '../format.ts'
import type { Period } from '../model/periods.ts'
import { interfaceLabel, sumUsage, type UsageLine, type UsageSum } from '../model/usage.ts'
import { UsageChart } from './usage-chart.tsx'

const METHODS_MAX = 12

type UsageBreakdownProps = {
  /** By day and interface. */
  days: readonly UsageLine[]
  /** By method. */
  methods: readonly UsageLine[]
  period: Period
}

/** The usage of one subscription by day, interface and method. */
export function UsageBreakdown({ days, methods, period }: UsageBreakdownProps) {
  return (
    <div class="usage-row">
      <UsageChart lines={days} period={period} />
      <Sums title="Interface" rows={sumUsage(days, (line) => interfaceLabel(line.interface))} />
      <Sums title="Method" rows={sumUsage(methods, (line) => line.method ?? 'other').slice(0, METHODS_MAX)} />
    </div>
  )
}

function Sums({ title, rows }: { title: string; rows: readonly UsageSum[] }) {
  return (
    <table class="records small" data-table={title.toLowerCase()}>
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col" class="right">
            Calls
          </th>
          <th scope="col" class="right">
            Units
          </th>
          <th scope="col" class="right">
            Refused
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row">{row.name}</th>
            <td class="right number">{formatCompact(row.calls)}</td>
            <td class="right number">{formatCompact(row.units)}</td>
            <td class="right number">{formatCompact(row.refused)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
