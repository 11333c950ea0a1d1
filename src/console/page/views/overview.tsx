import { formatCount, formatPercent, NONE } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Stat } from '../../../ui/stat.tsx'
import type { OverviewRecord, StatusRecord } from '../../client/wire.ts'
import { showDaysLeft, showLastDay } from '../../model/time.ts'
import { addCustomer } from '../actions/customers.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { Heading } from '../ui/heading.tsx'
import { CustomerLink, Link, SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, Loading } from '../ui/loading.tsx'
import { Meter } from '../ui/meter.tsx'
import { Table } from '../ui/table.tsx'

const REFRESH_MS = 5000
const REFUSALS_SHOWN = 10

export function OverviewView() {
  const store = useStore()
  const loaded = useLoad<OverviewRecord>('overview', { everyMs: REFRESH_MS })
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
            <Glance overview={overview} />
            <div class="pair">
              <NearLimits of={overview.near_month_limit} />
              <Ending of={overview.ending_14d} />
            </div>
            <Refusals of={overview.refusals_last_minute} />
          </>
        )}
      </Loading>
    </>
  )
}

/** Why the process is not in order, as `sluice status` prints it. */
function Degraded() {
  const { value } = useLoad<StatusRecord>('status', { everyMs: REFRESH_MS }).value
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

function Glance({ overview }: { overview: OverviewRecord }) {
  const { chain, nodes, sender, subscriptions } = overview
  const healthy = nodes.filter(({ state }) => state === 'healthy').length
  const perSecond = chain.transactions_per_second ?? chain.execution_transactions_per_second
  const all = Object.values(subscriptions).reduce((sum, count) => sum + count, 0)
  const landed = sender?.landed_share
  return (
    <Panel id="glance" title="Solana at a glance">
      <div class="stats">
        <Stat id="slot" label="slot" value={formatCount(chain.slot)} width={11} tone="lead" />
        <Stat id="slotLength" label="slot length" value={formatCount(chain.slot_ms)} unit="ms" />
        {perSecond != null && (
          <Stat id="tps" label="transactions" value={formatCount(Math.round(perSecond))} unit="per second" />
        )}
        <Stat
          id="nodes"
          label="nodes"
          value={nodes.length === 0 ? NONE : `${healthy} of ${nodes.length}`}
          unit="healthy"
          tone={healthy < nodes.length ? 'fair' : 'good'}
        />
        {nodes.length > 0 && (
          <Stat
            id="lag"
            label="furthest behind"
            value={formatCount(Math.max(...nodes.map(({ lag_slots }) => lag_slots)))}
            unit="slots"
          />
        )}
        {landed != null && (
          <Stat id="landed" label="landed by the sender" value={formatPercent(100 * landed)} unit="%" />
        )}
        <Stat id="customers" label="customers" value={formatCount(overview.customers)} />
        <Stat
          id="subscriptions"
          label="active subscriptions"
          value={formatCount(subscriptions['active'])}
          unit={`of ${formatCount(all)}`}
        />
      </div>
    </Panel>
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
