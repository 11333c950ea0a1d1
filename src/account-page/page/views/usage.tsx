import { useSignal } from '@preact/signals'
import { formatCompact } from '../../../ui/format.ts'
import { type PeriodName, periodOf } from '../../../ui/model/periods.ts'
import { showTime } from '../../../ui/model/time.ts'
import { totalOf } from '../../../ui/model/usage.ts'
import { ErrorNotice } from '../../../ui/page/error-notice.tsx'
import { LoadedView } from '../../../ui/page/loaded-view.tsx'
import type { PageError } from '../../../ui/page/page-error.ts'
import { saveFile } from '../../../ui/page/save-file.ts'
import { Panel } from '../../../ui/panel.tsx'
import { PeriodSwitch } from '../../../ui/parts/period-switch.tsx'
import { UsageBreakdown } from '../../../ui/parts/usage-breakdown.tsx'
import type { UsageRecord } from '../../wire.ts'
import { useLoad } from '../load.ts'
import { useStore } from '../store.ts'

const PERIODS: readonly PeriodName[] = ['today', '7d', '30d', 'month', 'last-month']
const REFRESH_MS = 30_000

/** Usage by day, interface and method, with a file for a spreadsheet. */
export function Usage() {
  const { client } = useStore()
  const chosen = useSignal<PeriodName>('30d')
  const failed = useSignal<PageError | undefined>(undefined)
  const period = periodOf(chosen.value, Date.now())
  const query = { since: period.since, until: period.until }
  const days = useLoad<UsageRecord>('v1/usage', { query: { ...query, by: 'day' }, everyMs: REFRESH_MS })
  const methods = useLoad<UsageRecord>('v1/usage', { query: { ...query, by: 'method' }, everyMs: REFRESH_MS })
  const download = async (): Promise<void> => {
    const result = await client.file('v1/usage', { query: { ...query, by: 'day', format: 'csv' } })
    failed.value = result.ok ? undefined : result.error
    if (result.ok) saveFile(`usage-${period.since}-${period.until}.csv`, result.value)
  }
  return (
    <Panel
      id="usage"
      title="Usage"
      aside={<PeriodSwitch periods={PERIODS} value={chosen.value} onChange={(value) => (chosen.value = value)} />}
    >
      {failed.value !== undefined && <ErrorNotice error={failed.value} />}
      <LoadedView of={days.value}>
        {({ lines, as_of: asOf }) => {
          if (lines.length === 0)
            return (
              <p class="dim" data-part="no-usage">
                No usage {period.text}. A call appears here within some seconds: try a line of “Addresses” below.
              </p>
            )
          const total = totalOf(lines)
          return (
            <>
              <UsageBreakdown days={lines} methods={methods.value.value?.lines ?? []} period={period} />
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
      </LoadedView>
    </Panel>
  )
}
