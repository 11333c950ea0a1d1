import { useSignal } from '@preact/signals'
import { formatCompact } from '../../../../ui/format.ts'
import { Panel } from '../../../../ui/panel.tsx'
import type { UsageRow } from '../../../client/wire.ts'
import { daysOf, PERIOD_LABELS, type PeriodName, periodOf } from '../../../model/periods.ts'
import { showTime } from '../../../model/time.ts'
import { barsByDay, INTERFACE_LABELS, sumUsage, totalOf, type UsageSum } from '../../../model/usage.ts'
import { BarChart } from '../../../page/ui/bar-chart.tsx'
import { Switch } from '../../../page/ui/filter.tsx'
import type { AccountError } from '../../client.ts'
import type { AccountUsageLine, UsageRecord } from '../../wire.ts'
import { useLoad } from '../load.ts'
import { ErrorNotice, Loading } from '../loading.tsx'
import { useStore } from '../store.ts'

const SHOWN: readonly PeriodName[] = ['today', '7d', '30d', 'month', 'last-month']
const METHODS_MAX = 12
const REFRESH_MS = 30_000

/** Usage by day, interface and method, with a file for a spreadsheet. */
export function Usage() {
  const { client } = useStore()
  const chosen = useSignal<PeriodName>('30d')
  const failed = useSignal<AccountError | undefined>(undefined)
  const period = periodOf(chosen.value, Date.now())
  const query = { since: period.since, until: period.until }
  const days = useLoad<UsageRecord>('v1/usage', { query: { ...query, by: 'day' }, everyMs: REFRESH_MS })
  const methods = useLoad<UsageRecord>('v1/usage', { query: { ...query, by: 'method' }, everyMs: REFRESH_MS })
  const download = async (): Promise<void> => {
    const result = await client.file('v1/usage', { query: { ...query, by: 'day', format: 'csv' } })
    failed.value = result.ok ? undefined : result.error
    if (result.ok) saveFile(result.value, `usage-${period.since}-${period.until}.csv`)
  }
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
      {failed.value !== undefined && <ErrorNotice error={failed.value} />}
      <Loading of={days.value}>
        {({ lines, as_of: asOf }) => {
          const rows = lines.map(toRow)
          const total = totalOf(rows)
          if (lines.length === 0)
            return (
              <p class="dim" data-part="no-usage">
                No usage {period.text}. A call appears here within some seconds: try a line of “Addresses” below.
              </p>
            )
          return (
            <>
              <div class="usage-row">
                <BarChart
                  bars={barsByDay(rows, daysOf(period))}
                  unit="units"
                  nameOf={(part) => INTERFACE_LABELS[part] ?? part}
                  label={`${formatCompact(total.units)} units in ${formatCompact(total.calls)} calls, ${formatCompact(total.refused)} refused, ${period.text}.`}
                />
                <Sums
                  title="Interface"
                  rows={sumUsage(rows, (row) => INTERFACE_LABELS[row.interface] ?? row.interface)}
                />
                <Sums
                  title="Method"
                  rows={sumUsage((methods.value.value?.lines ?? []).map(toRow), (row) => row.method ?? 'other').slice(
                    0,
                    METHODS_MAX,
                  )}
                />
              </div>
              <p class="dim">
                {formatCompact(total.calls)} calls, {formatCompact(total.units)} units, {formatCompact(total.refused)}{' '}
                refused, {period.text}. As of {showTime(asOf)} UTC; the last second may be missing.{' '}
                <button type="button" class="quiet-button" onClick={() => void download()}>
                  Download CSV
                </button>
              </p>
            </>
          )
        }}
      </Loading>
    </Panel>
  )
}

/** As the models of the console take it. */
function toRow({ day, ...line }: AccountUsageLine): UsageRow {
  return { subscription: null, ...line, ...(day === undefined ? {} : { from: day }) }
}

/** The file never has an address of its own, which would need the token. */
function saveFile(content: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
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
