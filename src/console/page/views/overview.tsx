import { formatCount, NONE } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Stat } from '../../../ui/stat.tsx'
import type { OverviewRecord } from '../../client/wire.ts'
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

export function OverviewView() {
  const store = useStore()
  const loaded = useLoad<OverviewRecord>('overview', { everyMs: REFRESH_MS })
  return (
    <>
      <Heading title="Overview" />
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
              <NearLimits rows={overview.near_limits ?? []} />
              <Ending rows={overview.ending ?? []} />
            </div>
            <Refusals rows={overview.refusals ?? []} />
          </>
        )}
      </Loading>
    </>
  )
}

function Glance({ overview }: { overview: OverviewRecord }) {
  const { solana = {} } = overview
  const failing = solana.nodes_failing ?? 0
  return (
    <Panel id="glance" title="Solana at a glance">
      <div class="stats">
        <Stat id="slot" label="slot" value={formatCount(solana.slot)} width={11} tone="lead" />
        <Stat id="tps" label="transactions" value={formatCount(solana.tps)} unit="per second" />
        <Stat id="slotLength" label="slot length" value={formatCount(solana.slot_ms)} unit="ms" />
        <Stat
          id="nodes"
          label="nodes"
          value={solana.nodes === undefined ? NONE : `${solana.nodes - failing} of ${solana.nodes}`}
          unit="in use"
          tone={failing > 0 ? 'fair' : 'good'}
        />
        <Stat id="lag" label="furthest behind" value={formatCount(solana.lag_slots)} unit="slots" />
        <Stat id="landed" label="landed by the sender" value={formatCount(solana.landed)} />
        <Stat id="customers" label="customers" value={formatCount(overview.customers)} />
        <Stat id="subscriptions" label="subscriptions" value={formatCount(overview.subscriptions)} />
      </div>
    </Panel>
  )
}

function NearLimits({ rows }: { rows: NonNullable<OverviewRecord['near_limits']> }) {
  return (
    <Panel id="near" title="Close to a limit">
      <Table
        label="Close to a limit"
        rows={rows}
        keyOf={(row) => `${row.subscription} ${row.limit}`}
        columns={[
          { title: 'Subscription', cell: (row) => <SubscriptionLink name={row.subscription} /> },
          { title: 'Limit', cell: (row) => row.limit },
          { title: 'Used', cell: (row) => <Meter used={row.used} max={row.max} /> },
        ]}
        none={<p>Nobody is close to a limit.</p>}
      />
    </Panel>
  )
}

function Ending({ rows }: { rows: NonNullable<OverviewRecord['ending']> }) {
  return (
    <Panel
      id="ending"
      title="Ends soon"
      aside={<Link to={{ view: 'subscriptions', query: { ending: '30d' } }}>All of 30 days</Link>}
    >
      <Table
        label="Ends soon"
        rows={rows}
        keyOf={(row) => row.name}
        columns={[
          { title: 'Subscription', cell: (row) => <SubscriptionLink name={row.name} /> },
          { title: 'Customer', cell: (row) => <CustomerLink name={row.customer} />, isMinor: true },
          { title: 'Last day', cell: (row) => showLastDay(row.valid_until) },
          { title: '', cell: (row) => showDaysLeft(row.valid_until, Date.now()) },
        ]}
        none={<p>Nothing ends within seven days.</p>}
      />
    </Panel>
  )
}

function Refusals({ rows }: { rows: NonNullable<OverviewRecord['refusals']> }) {
  return (
    <Panel id="refusals" title="Refused since the start">
      <Table
        label="Refusals"
        rows={rows.toSorted((a, b) => b.count - a.count).slice(0, 10)}
        keyOf={(row) => `${row.part} ${row.reason}`}
        columns={[
          { title: 'Reason', cell: (row) => row.reason },
          { title: 'Where', cell: (row) => row.part },
          { title: 'Count', align: 'right', cell: (row) => formatCount(row.count) },
        ]}
        none={<p>Nothing was refused.</p>}
      />
    </Panel>
  )
}
