import { formatCount } from '../../../ui/format.ts'
import type { ConnectionRecord } from '../../client/wire.ts'
import { showBytes, showSeconds } from '../../model/time.ts'
import { INTERFACE_LABELS } from '../../model/usage.ts'
import { closeConnection } from '../actions/operate.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { Heading } from '../ui/heading.tsx'
import { SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Table } from '../ui/table.tsx'

type Connections = {
  readonly items: readonly ConnectionRecord[]
  readonly total: number
}

const REFRESH_MS = 5000

export function ConnectionsView() {
  const store = useStore()
  const loaded = useLoad<Connections>('connectionList', { everyMs: REFRESH_MS })
  return (
    <>
      <Heading title="Connections" note="Open WebSocket connections and gRPC streams, the oldest first." />
      <Loading of={loaded.value}>
        {({ items: rows, total }) => (
          <>
            <Table
              label="Connections"
              rows={rows}
              keyOf={(row) => row.id}
              columns={[
                {
                  title: 'Subscription',
                  cell: (row) => <SubscriptionLink name={row.subscription ?? row.subscription_id} />,
                },
                { title: 'Interface', cell: (row) => INTERFACE_LABELS[row.interface] ?? row.interface },
                { title: 'From', cell: (row) => <code>{row.remote_address}</code>, isMinor: true },
                { title: 'Open for', align: 'right', cell: (row) => showSeconds(row.age_seconds) },
                { title: 'Subscribed', align: 'right', cell: (row) => formatCount(row.subscriptions), isMinor: true },
                { title: 'Sent', align: 'right', cell: (row) => showBytes(row.bytes_out), isMinor: true },
                {
                  title: '',
                  align: 'right',
                  cell: (row) => (
                    <ActionButton
                      needs="operate"
                      tone="quiet"
                      label={`Close the connection of ${row.subscription ?? row.subscription_id}`}
                      spec={() => closeConnection(store, row)}
                    >
                      Close
                    </ActionButton>
                  ),
                },
              ]}
              none={<p>Nothing is open. WebSocket connections and gRPC streams appear here while they last.</p>}
            />
            {total > rows.length && (
              <p class="dim">
                The oldest {formatCount(rows.length)} of {formatCount(total)} are shown.
              </p>
            )}
          </>
        )}
      </Loading>
    </>
  )
}
