import { useSignal } from '@preact/signals'
import type { ConnectionLine } from '../../../ui/model/connection.ts'
import { showSeconds } from '../../../ui/model/time.ts'
import { interfaceLabel } from '../../../ui/model/usage.ts'
import { ErrorNotice } from '../../../ui/page/error-notice.tsx'
import { LoadedView } from '../../../ui/page/loaded-view.tsx'
import type { PageError } from '../../../ui/page/page-error.ts'
import { Panel } from '../../../ui/panel.tsx'
import { ConnectionTable } from '../../../ui/parts/connection-table.tsx'
import type { ConnectionsRecord } from '../../wire.ts'
import { useLoad } from '../load.ts'
import { useStore } from '../store.ts'

const REFRESH_MS = 5000

/** Open WebSockets and gRPC streams, each of which can be closed after a second click. */
export function Connections() {
  const { client } = useStore()
  const round = useSignal(0)
  const asked = useSignal('')
  const failed = useSignal<PageError | undefined>(undefined)
  const done = useSignal('')
  const loaded = useLoad<ConnectionsRecord>('v1/connections', { everyMs: REFRESH_MS, round: round.value })

  async function close({ id }: ConnectionLine): Promise<void> {
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
      <LoadedView of={loaded.value}>
        {({ connections, total }) => (
          <ConnectionTable
            label="Open connections"
            lines={connections}
            total={total}
            action={(line) => (
              <button
                type="button"
                class="quiet-button"
                aria-label={`${asked.value === line.id ? 'Really close' : 'Close'} the ${interfaceLabel(line.interface)} connection from ${line.remote_address}, open for ${showSeconds(line.age_seconds)}`}
                onClick={() => void close(line)}
              >
                {asked.value === line.id ? 'Really close?' : 'Close'}
              </button>
            )}
          />
        )}
      </LoadedView>
    </Panel>
  )
}
