import { ConnectionTable } from '../../../ui/parts/connection-table.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import type { ConnectionRecord } from '../../client/wire.ts'
import { closeConnection } from '../actions/operate.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'

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
        {({ items, total }) => (
          <ConnectionTable
            label="Connections"
            lines={items}
            total={total}
            first={[{ title: 'Subscription', cell: (line) => <SubscriptionLink name={ownerOf(line)} /> }]}
            action={(line) => (
              <ActionButton
                needs="operate"
                tone="quiet"
                label={`Close the connection of ${ownerOf(line)}`}
                spec={() => closeConnection(store, line)}
              >
                Close
              </ActionButton>
            )}
          />
        )}
      </Loading>
    </>
  )
}

/** The name of the subscription; its id where the process does not know the name. */
function ownerOf({ subscription, subscription_id: id }: ConnectionRecord): string {
  return subscription ?? id
}
