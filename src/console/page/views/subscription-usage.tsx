import { useSignal } from '@preact/signals'
import { type PeriodName, periodOf } from '../../../ui/model/periods.ts'
import { Panel } from '../../../ui/panel.tsx'
import { PeriodSwitch } from '../../../ui/parts/period-switch.tsx'
import { UsageBreakdown } from '../../../ui/parts/usage-breakdown.tsx'
import type { Page, UsageRow } from '../../client/wire.ts'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'

const PERIODS: readonly PeriodName[] = ['7d', '30d', 'month', 'last-month']

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
      aside={<PeriodSwitch periods={PERIODS} value={chosen.value} onChange={(value) => (chosen.value = value)} />}
    >
      <Loading of={days.value}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="dim">No usage {period.text}.</p>
          ) : (
            <UsageBreakdown days={items} methods={methods.value.value?.items ?? []} period={period} />
          )
        }
      </Loading>
    </Panel>
  )
}
