import { formatCompact, formatCount } from '../../../ui/format.ts'
import { PERIODS, periodNamed, periodOf } from '../../../ui/model/periods.ts'
import { showBytes } from '../../../ui/model/time.ts'
import { hasBytes, sumUsage, totalOf, type UsageSum } from '../../../ui/model/usage.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { PeriodSwitch } from '../../../ui/parts/period-switch.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import { UsageChart } from '../../../ui/parts/usage-chart.tsx'
import { Stat } from '../../../ui/stat.tsx'
import type { Page, UsageRow } from '../../client/wire.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'
import { CustomerLink, SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'

/** No name of a subscription contains a space. */
const OTHERS = 'all others'

/** Who used what in a period. */
export function UsageView() {
  const { route } = useStore()
  const { customer = '' } = route.value.query
  const name = periodNamed(route.value.query['period'], '7d')
  const period = periodOf(name, Date.now())
  const loaded = useLoad<Page<UsageRow>>('usage', {
    query: { since: period.since, until: period.until, by: 'day', customer },
  })
  return (
    <>
      <Heading
        title={customer === '' ? 'Usage' : <bdi>Usage of {customer}</bdi>}
        note={period.text}
        aside={
          <PeriodSwitch
            periods={PERIODS}
            value={name}
            onChange={(value) => goTo({ view: 'usage', query: { customer, period: value } })}
          />
        }
      />
      <Loading of={loaded.value}>
        {({ items }) => {
          const total = totalOf(items)
          const customerOf = new Map(items.map((row) => [row.subscription, row.customer]))
          return (
            <>
              <Panel id="period" title="In this period">
                <div class="stats">
                  <Stat id="units" label="units" value={formatCompact(total.units)} />
                  <Stat id="calls" label="calls" value={formatCompact(total.calls)} />
                  <Stat id="refused" label="refused" value={formatCompact(total.refused)} />
                  {hasBytes(items) && <Stat id="bytes" label="sent" value={showBytes(total.bytes)} />}
                </div>
                {items.length > 0 && <UsageChart lines={items} period={period} />}
              </Panel>
              <Table
                label="Usage by subscription"
                rows={othersLast(sumUsage(items, (row) => row.subscription ?? OTHERS))}
                keyOf={(row) => row.name}
                columns={[
                  {
                    title: 'Subscription',
                    cell: (row) => (row.name === OTHERS ? OTHERS : <SubscriptionLink name={row.name} />),
                  },
                  { title: 'Customer', cell: (row) => <CustomerLink name={customerOf.get(row.name)} />, isMinor: true },
                  { title: 'Units', align: 'right', cell: (row) => formatCount(row.units) },
                  { title: 'Calls', align: 'right', cell: (row) => formatCount(row.calls) },
                  { title: 'Refused', align: 'right', cell: (row) => formatCount(row.refused) },
                  ...(hasBytes(items)
                    ? [
                        {
                          title: 'Sent',
                          align: 'right' as const,
                          cell: (row: UsageSum) => showBytes(row.bytes),
                          isMinor: true,
                        },
                      ]
                    : []),
                ]}
                none={<p>Nobody used anything in this period. Choose a longer one.</p>}
              />
            </>
          )
        }}
      </Loading>
    </>
  )
}

/** The sum of many is no subscription to compare with. */
function othersLast(rows: readonly UsageSum[]): UsageSum[] {
  return rows.toSorted((a, b) => Number(a.name === OTHERS) - Number(b.name === OTHERS))
}
