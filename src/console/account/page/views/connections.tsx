import { useSignal } from '@preact/signals'
import { formatCount } from '../../../../ui/format.ts'
import { Panel } from '../../../../ui/panel.tsx'
import { showBytes, showSeconds } from '../../../model/time.ts'
import { INTERFACE_LABELS } from '../../../model/usage.ts'
import { Table } from '../../../page/ui/table.tsx'
import type { AccountError } from '../../client.ts'
import type { ConnectionsRecord, OwnConnection } from '../../wire.ts'
import { useLoad } from '../load.ts'
import { ErrorNotice, Loading } from '../loading.tsx'
import { useStore } from '../store.ts'

const REFRESH_MS = 5000

/** Open WebSockets and gRPC streams, each of which can be closed after a second click. */
export function Connections() {
  const { client } = useStore()
  const round = useSignal(0)
  const asked = useSignal('')
  const failed = useSignal<AccountError | undefined>(undefined)
  const done = useSignal('')
  const loaded = useLoad<ConnectionsRecord>('v1/connections', { everyMs: REFRESH_MS, round: round.value })

  async function close({ id }: OwnConnection): Promise<void> {
    if (asked.value !== id) {
      asked.value = id
      return
    }
    asked.value = ''
    const result = await client.call(`v1/connections/${encodeURIComponent(id)}/close`, { method: 'POST' })
    failed.value = result.ok ? undefined : result.error
    done.value = result.ok ? 'The connection was closed.' : ''
    round.value += 1
  }

  return (
    <Panel id="connections" title="Open connections">
      {failed.value !== undefined && <ErrorNotice error={failed.value} />}
      <p class="sr" role="status">
        {done.value}
      </p>
      <Loading of={loaded.value}>
        {({ connections, total }) => (
          <>
            <Table
              label="Open connections"
              rows={connections}
              keyOf={({ id }) => id}
              columns={[
                { title: 'Interface', cell: (row) => INTERFACE_LABELS[row.interface] ?? row.interface },
                { title: 'From', cell: (row) => <code>{row.remote_address}</code>, isMinor: true },
                { title: 'Open for', align: 'right', cell: (row) => showSeconds(row.age_seconds) },
                { title: 'Subscribed', align: 'right', cell: (row) => formatCount(row.subscriptions), isMinor: true },
                { title: 'Sent', align: 'right', cell: (row) => showBytes(row.bytes_out), isMinor: true },
                {
                  title: '',
                  align: 'right',
                  cell: (row) => (
                    <button
                      type="button"
                      class="quiet-button"
                      aria-label={`${asked.value === row.id ? 'Really close' : 'Close'} the ${INTERFACE_LABELS[row.interface] ?? row.interface} connection from ${row.remote_address}, open for ${showSeconds(row.age_seconds)}`}
                      onClick={() => void close(row)}
                    >
                      {asked.value === row.id ? 'Really close?' : 'Close'}
                    </button>
                  ),
                },
              ]}
              none={<p>Nothing is open. WebSocket connections and gRPC streams appear here while they last.</p>}
            />
            {total > connections.length && (
              <p class="dim">
                The oldest {formatCount(connections.length)} of {formatCount(total)} are shown.
              </p>
            )}
          </>
        )}
      </Loading>
    </Panel>
  )
}
