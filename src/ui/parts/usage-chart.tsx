import { formatCompact } from '../format.ts'
import { daysOf, type Period } from '../model/periods.ts'
import { barsByDay, interfaceLabel, totalOf, type UsageLine } from '../model/usage.ts'
import { BarChart } from './bar-chart.tsx'

/** Units by day and interface. */
export function UsageChart({ lines, period }: { lines: readonly UsageLine[]; period: Period }) {
  const { units, calls, refused } = totalOf(lines)
  return (
    <BarChart
      bars={barsByDay(lines, daysOf(period))}
      unit="units"
      nameOf={interfaceLabel}
      label={`${formatCompact(units)} units in ${formatCompact(calls)} calls, ${formatCompact(refused)} refused, ${period.text}.`}
    />
  )
}
