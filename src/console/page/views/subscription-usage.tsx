import { useSignal } from '@preact/signals'
import { formatCompact } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import type { Page, UsageRow } from '../../client/wire.ts'
import { daysOf, PERIOD_LABELS, type PeriodName, periodOf } from '../../model/periods.ts'
import { barsByDay, INTERFACE_LABELS, sumUsage, totalOf } from '../../model/usage.ts'
import { BarChart } from '../ui/bar-chart.tsx'
import { Switch } from '../ui/filter.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'

const SHOWN: readonly PeriodName[] = ['7d', '30d', 'month', 'last-month']
const METHODS_MAX = 8

/** Usage of one subscription by day, interface and method. */
export function SubscriptionUsage({ name }: { name: string }) {
  const chosen = useSignal<PeriodName>('30d')
  const period = periodOf(chosen.value, Date.now())
  const query = { since: period.since, until: period.until, subscription: name }
  const days = useLoad<Page<UsageRow>>('usage', { query: { ...query, by: 'day' } })
  const methods = useLoad<Page<UsageRow>>('usage', { query: { ...query, by: 'method' } })
  return (
    <Panel
      id="usage"
      title="Usage"
      aside={
        <Switch
          label="Period"
          options={SHOWN.map((value) => ({ value, label: PERIOD_LABELS[value] }))}
          value={chosen.value}
          onChange={(value) => (chosen.value = value)}
        />
      }
    >
      <Loading of={days.value}>
        {({ items }) => {
          const total = totalOf(items)
          if (items.length === 0) return <p class="dim">No usage {period.text}.</p>
          return (
            <div class="usage-row">
              <BarChart
                bars={barsByDay(items, daysOf(period))}
                unit="units"
                nameOf={(part) => INTERFACE_LABELS[part] ?? part}
                label={`${formatCompact(total.units)} units in ${formatCompact(total.calls)} calls, ${formatCompact(total.refused)} refused, ${period.text}.`}
              />
              <UsageList
                title="Interface"
                rows={sumUsage(items, (row) => INTERFACE_LABELS[row.interface] ?? row.interface)}
              />
              <UsageList
                title="Method"
                rows={sumUsage(methods.value.value?.items ?? [], (row) => row.method ?? 'other').slice(0, METHODS_MAX)}
              />
            </div>
          )
        }}
      </Loading>
    </Panel>
  )
}

function UsageList({ title, rows }: { title: string; rows: ReturnType<typeof sumUsage> }) {
  return (
    <table class="records small">
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col" class="right">
            Calls
          </th>
          <th scope="col" class="right">
            Units
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row">{row.name}</th>
            <td class="right number">{formatCompact(row.calls)}</td>
            <td class="right number">{formatCompact(row.units)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
