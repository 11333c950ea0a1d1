import { formatCompact, formatCount } from '../../../ui/format.ts'
import { showBytes } from '../../../ui/model/time.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { DeliveryRow, DestinationRow, Page } from '../../client/wire.ts'
import { pauseDestination } from '../actions/operate.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Pager, usePaging } from '../ui/pager.tsx'

const SINCE = '24h'

/** Packets that were not sent, for whatever reason. */
function unsentOf(row: DeliveryRow): number {
  const { unsent_rate = 0, unsent_total_rate = 0, unsent_buffer = 0, unsent_paused = 0, unsent_error = 0 } = row
  return unsent_rate + unsent_total_rate + unsent_buffer + unsent_paused + unsent_error
}

export function ShredsView() {
  const store = useStore()
  const paging = usePaging('')
  const destinations = useLoad<Page<DestinationRow>>('destinationList', { query: { cursor: paging.cursor } })
  const report = useLoad<Page<DeliveryRow>>('shredReport', { query: { since: SINCE } })
  return (
    <>
      <Heading title="Shreds" note="Where raw shreds are sent, and what was delivered in the last 24 hours." />
      <Panel id="destinations" title="Destinations">
        <Loading of={destinations.value}>
          {({ items }) => (
            <Table
              label="Destinations"
              rows={items}
              keyOf={(row) => `${row.subscription} ${row.ip} ${row.port} ${row.is_pending ?? false}`}
              columns={[
                { title: 'Subscription', cell: (row) => <SubscriptionLink name={row.subscription} /> },
                {
                  title: 'Address',
                  cell: (row) => (
                    <code>
                      {row.ip}:{row.port}
                    </code>
                  ),
                },
                { title: 'Address is', cell: (row) => <Badge state={row.proof} />, isMinor: true },
                { title: 'Sending', cell: (row) => <Sending row={row} /> },
                { title: 'Sent', align: 'right', cell: (row) => formatCompact(row.sent), isMinor: true },
                { title: 'Not sent', align: 'right', cell: (row) => formatCompact(row.unsent), isMinor: true },
                {
                  title: '',
                  align: 'right',
                  cell: (row) => (
                    <ActionButton
                      needs="provision"
                      tone="quiet"
                      label={`${row.paused ? 'Resume' : 'Pause'} shreds to ${row.subscription}`}
                      spec={() => pauseDestination(store, row.subscription, row.paused)}
                    >
                      {row.paused ? 'Resume' : 'Pause'}
                    </ActionButton>
                  ),
                },
              ]}
              none={<p>No destinations. Set one on the page of a subscription that includes shreds-raw.</p>}
            />
          )}
        </Loading>
        <Pager paging={paging} next={destinations.value.value?.next_cursor} />
      </Panel>
      <Panel id="delivery" title="Delivery, last 24 hours">
        <Loading of={report.value} missing={<p>On the machine that runs Sluice: sluice shred report</p>}>
          {({ items }) => (
            <Table
              label="Delivery"
              rows={items}
              keyOf={(row) => `${row.from ?? ''} ${row.subscription}`}
              columns={[
                { title: 'Subscription', cell: (row) => <SubscriptionLink name={row.subscription} /> },
                { title: 'From (UTC)', cell: (row) => (row.from ?? '').slice(0, 16).replace('T', ' '), isMinor: true },
                { title: 'Packets', align: 'right', cell: (row) => formatCompact(row.packets) },
                { title: 'Bytes', align: 'right', cell: (row) => showBytes(row.bytes) },
                { title: 'Slots', align: 'right', cell: (row) => formatCount(row.slots), isMinor: true },
                { title: 'Not sent', align: 'right', cell: (row) => formatCompact(unsentOf(row)) },
              ]}
              none={<p>Nothing was sent in the last 24 hours.</p>}
            />
          )}
        </Loading>
      </Panel>
    </>
  )
}

function Sending({ row }: { row: DestinationRow }) {
  if (row.paused) return <Badge state="paused" />
  if (row.is_pending === true) return <Badge state="waiting" />
  if (row.state == null) return <span class="dim">off</span>
  return (
    <>
      <Badge state={row.state} /> {row.last_fault && <span class="dim minor">last fault: {row.last_fault}</span>}
    </>
  )
}
