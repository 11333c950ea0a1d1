import { formatCount } from '../../../ui/format.ts'
import { showSeconds } from '../../../ui/model/time.ts'
import { interfaceLabel } from '../../../ui/model/usage.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Facts } from '../../../ui/parts/facts.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { BillingRecord } from '../../client/wire.ts'
import { SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { MoreRows, useFirstRows } from '../ui/more-rows.tsx'
import { Time } from '../ui/time.tsx'
import { InvoicePreview } from './invoice-preview.tsx'
import { UsageExport } from './usage-export.tsx'

const REFRESH_MS = 10_000
const DEAD_SHOWN = 8

/** What was sent to the billing system, and what a month costs. */
export function BillingView() {
  const loaded = useLoad<BillingRecord>('billingStatus', { everyMs: REFRESH_MS })
  return (
    <>
      <Heading
        title="Billing"
        note="Usage that is sent to your billing system, and what a month costs. Sluice takes no money."
      />
      <Panel id="sink" title="Billing system">
        <Loading of={loaded.value}>
          {(billing) => (billing.sink === null ? <NoSink /> : <SinkState of={billing} name={billing.sink} />)}
        </Loading>
      </Panel>
      <InvoicePreview />
      <UsageExport />
    </>
  )
}

function NoSink() {
  return (
    <div class="empty-state">
      <p>
        No billing system is configured: nothing is sent. Set <code>billing.sink</code> in the configuration and
        restart; docs/billing.md has an example for each system.
      </p>
    </div>
  )
}

function SinkState({ of, name }: { of: BillingRecord; name: string }) {
  const behind = of.behind_seconds ?? 0
  const without = of.customers_without_billing_id ?? []
  const listed = of.dead?.length ?? 0
  const shown = useFirstRows(of.dead ?? [], DEAD_SHOWN)
  return (
    <>
      {of.failing != null && (
        <div class="notice notice-error" role="alert">
          <p>{name} does not accept events; they wait and are sent again.</p>
          <p>{of.failing}</p>
        </div>
      )}
      <Facts
        facts={[
          ['System', name],
          ['State', <Badge key="state" state={of.failing == null ? (of.state ?? '') : 'failing'} />],
          ['Events made up to (UTC)', <Time key="planned" at={of.planned_until} none="none yet" />],
          ['Last success (UTC)', <Time key="success" at={of.last_success_at} none="none since the start" />],
          ['Waiting', `${formatCount(of.waiting)} events`],
          ['Behind', behind === 0 ? 'no' : showSeconds(behind)],
          ['Customers without billing id', without.length === 0 ? '' : without.join(', ')],
          ['Dead letters', formatCount(of.dead_letters)],
        ]}
      />
      {(of.dead_letters ?? 0) > 0 && (
        <>
          <h3>Dead letters</h3>
          <p class="dim">
            They are not sent until you decide: <code>sluice billing retry</code>.
            {listed < (of.dead_letters ?? 0) && ` The first ${formatCount(listed)} are listed.`}
          </p>
          <Table
            label="Dead letters"
            rows={shown.rows}
            keyOf={(row) => row.id}
            columns={[
              {
                title: 'Subscription',
                cell: (row) => <SubscriptionLink name={row.subscription_name ?? row.subscription} />,
              },
              { title: 'Hour (UTC)', cell: (row) => <Time at={row.hour} />, isMinor: true },
              {
                title: 'Interface',
                cell: (row) => interfaceLabel(row.interface),
                isMinor: true,
              },
              {
                title: 'Amount',
                align: 'right',
                cell: (row) => `${formatCount(row.amount)} ${row.quantity}`,
                isMinor: true,
              },
              {
                title: 'Reason',
                cell: (row) => (
                  <span class="wrapped">
                    {row.reason}
                    {row.outcome_unknown && <span class="dim"> (it may have arrived)</span>}
                  </span>
                ),
              },
            ]}
            none={<p>No dead letters.</p>}
          />
          <MoreRows of={shown} />
        </>
      )}
    </>
  )
}
