import type { ListedNotice } from '../../../contract/notice-wire.ts'
import { formatCount } from '../../../ui/format.ts'
import { showDaysLeft, showLastDay } from '../../../ui/model/time.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Meter } from '../../../ui/parts/meter.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { OverviewRecord, Page, StatusRecord } from '../../client/wire.ts'
import { addCustomer } from '../actions/customers.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { CustomerLink, Link, SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, Loading } from '../ui/loading.tsx'
import { Time } from '../ui/time.tsx'
import { Glance } from './overview-glance.tsx'
import { LastHours } from './overview-hours.tsx'

const REFRESH_MS = 3000
const STATUS_MS = 10_000
const NOTICES_MS = 30_000
const REFUSALS_SHOWN = 10
const NOTICES_SHOWN = 6

export function OverviewView() {
  const store = useStore()
  const loaded = useLoad<OverviewRecord>('overview', { everyMs: REFRESH_MS })
  const shown = loaded.value.value
  if (shown !== undefined) store.live.add(shown, Date.now())
  return (
    <>
      <Heading title="Overview" />
      <Degraded />
      <Loading of={loaded.value}>
        {(overview) => (
          <>
            {overview.customers === 0 && (
              <Empty>
                <h2>Welcome to Sluice</h2>
                <p>
                  There is no customer yet. Add the first one, then create its subscription: that shows the card to
                  send.
                </p>
                <p>
                  <ActionButton needs="provision" tone="primary" spec={() => addCustomer(store)}>
                    Add the first customer
                  </ActionButton>
                </p>
              </Empty>
            )}
            <Glance overview={overview} points={store.live.points} />
            <LastHours />
            <div class="pair pair-wide">
              <NearLimits of={overview.near_month_limit} />
              <Ending of={overview.ending_14d} />
              <Refusals of={overview.refusals_last_minute} />
              <RecentNotices />
            </div>
          </>
        )}
      </Loading>
    </>
  )
}

/** Why the process is not in order, as `sluice status` prints it. */
function Degraded() {
  const { value } = useLoad<StatusRecord>('status', { everyMs: STATUS_MS }).value
  const reasons = value?.reasons ?? []
  if (value === undefined || reasons.length === 0) return null
  return (
    <div class="notice warning" role="status">
      {reasons.map(({ part, reason }) => (
        <p key={part}>
          {part}: {reason}
        </p>
      ))}
    </div>
  )
}

/** How many more there are than those in the list. */
function More({ count, shown }: { count: number; shown: number }) {
  return count > shown ? <p class="dim">and {formatCount(count - shown)} more</p> : null
}

function NearLimits({ of: { count, next } }: { of: OverviewRecord['near_month_limit'] }) {
  return (
    <Panel id="near" title="Close to the units of the month">
      <Table
        label="Close to the units of the month"
        rows={next}
        keyOf={(row) => row.name}
        columns={[
          { title: 'Subscription', cell: (row) => <SubscriptionLink name={row.name} /> },
          { title: 'Customer', cell: (row) => <CustomerLink name={row.customer} />, isMinor: true },
          { title: 'Used', cell: (row) => <Meter used={row.units} max={row.limit} /> },
        ]}
        none={<p>Nobody has used 80 % of the units of this month.</p>}
      />
      <More count={count} shown={next.length} />
    </Panel>
  )
}

function Ending({ of: { count, next } }: { of: OverviewRecord['ending_14d'] }) {
  return (
    <Panel
      id="ending"
      title="Ends soon"
      aside={<Link to={{ view: 'subscriptions', query: { ending: '30d' } }}>All of 30 days</Link>}
    >
      <Table
        label="Ends soon"
        rows={next}
        keyOf={(row) => row.name}
        columns={[
          { title: 'Subscription', cell: (row) => <SubscriptionLink name={row.name} /> },
          { title: 'Customer', cell: (row) => <CustomerLink name={row.customer} />, isMinor: true },
          { title: 'Last day', cell: (row) => showLastDay(row.valid_until) },
          { title: 'Left', cell: (row) => showDaysLeft(row.valid_until, Date.now()) },
        ]}
        none={<p>Nothing ends within 14 days.</p>}
      />
      <More count={count} shown={next.length} />
    </Panel>
  )
}

function Refusals({ of: { seconds, items } }: { of: OverviewRecord['refusals_last_minute'] }) {
  return (
    <Panel id="refusals" title="Refused in the last minute">
      <Table
        label="Refusals"
        rows={items.slice(0, REFUSALS_SHOWN)}
        keyOf={(row) => `${row.part} ${row.reason}`}
        columns={[
          { title: 'Reason', cell: (row) => row.reason },
          { title: 'Where', cell: (row) => row.part },
          { title: 'Count', align: 'right', cell: (row) => formatCount(row.count) },
        ]}
        none={<p>{seconds === 0 ? 'Counted from now on.' : `Nothing was refused in the last ${seconds} s.`}</p>}
      />
    </Panel>
  )
}

function RecentNotices() {
  const loaded = useLoad<Page<ListedNotice> & { readonly enabled?: boolean }>('notices', {
    query: { limit: String(NOTICES_SHOWN) },
    everyMs: NOTICES_MS,
  })
  return (
    <Panel id="recent-notices" title="Latest notices" aside={<Link to={{ view: 'notices' }}>All notices</Link>}>
      <Loading of={loaded.value}>
        {({ items, enabled }) => (
          <Table
            label="Latest notices"
            rows={items}
            keyOf={(row) => row.id}
            columns={[
              { title: 'Notice', cell: (row) => <span class="wrapped">{row.message}</span> },
              { title: 'Time (UTC)', cell: (row) => <Time at={row.timestamp} />, isMinor: true },
              {
                title: 'Delivery',
                cell: (row) => <Badge state={worstDelivery(row)} />,
              },
            ]}
            none={
              enabled === false ? (
                <p>No receiver is configured. Add one under [notices] in the configuration and restart.</p>
              ) : (
                <p>No notices yet.</p>
              )
            }
          />
        )}
      </Loading>
    </Panel>
  )
}

/** A notice is as good as the delivery that is worst. */
function worstDelivery({ deliveries }: ListedNotice): string {
  const states = deliveries.map(({ state }) => state)
  return ['given-up', 'waiting'].find((state) => states.includes(state)) ?? 'delivered'
}
