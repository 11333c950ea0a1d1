import { formatCount, formatMs } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { NodeRecord, Page, UpstreamRecord } from '../../client/wire.ts'
import { addDedicatedNode, assignNode, drainNode, removeNode, undrainNode } from '../actions/operate.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'

const REFRESH_MS = 5000

export function NodesView() {
  const store = useStore()
  const upstreams = useLoad<Page<UpstreamRecord>>('upstreamList', { everyMs: REFRESH_MS })
  const nodes = useLoad<Page<NodeRecord>>('nodeList')
  return (
    <>
      <Heading title="Nodes" note="The Solana nodes behind the gateway, and how far each is behind." />
      <Panel id="upstreams" title="Upstream nodes">
        <Loading of={upstreams.value}>
          {({ items }) => (
            <Table
              label="Upstream nodes"
              rows={items}
              keyOf={(row) => row.name}
              columns={[
                { title: 'Name', cell: (row) => row.name },
                {
                  title: 'State',
                  cell: (row) => (
                    <span title={row.reason}>
                      <Badge state={row.state} />
                    </span>
                  ),
                },
                { title: 'Slot', align: 'right', cell: (row) => formatCount(row.slot) },
                { title: 'Behind', align: 'right', cell: (row) => `${formatCount(row.lag_slots)} slots` },
                {
                  title: 'Latency',
                  align: 'right',
                  cell: (row) => formatMs(row.latency_ms),
                  isMinor: true,
                },
                {
                  title: 'Failed in 10 s',
                  align: 'right',
                  cell: (row) => `${row.recent_failures} of ${row.recent_calls}`,
                  isMinor: true,
                },
                {
                  title: '',
                  align: 'right',
                  cell: (row) =>
                    row.state.startsWith('drain') ? (
                      <ActionButton
                        needs="operate"
                        tone="quiet"
                        label={`Use again: ${row.name}`}
                        spec={() => undrainNode(store, row.name)}
                      >
                        Use again
                      </ActionButton>
                    ) : (
                      <ActionButton
                        needs="operate"
                        tone="quiet"
                        label={`Drain ${row.name}`}
                        spec={() => drainNode(store, row.name)}
                      >
                        Drain
                      </ActionButton>
                    ),
                },
              ]}
              none={
                <p>No upstream nodes. Add them under [[upstreams.nodes]] in the configuration, then: sluice reload.</p>
              }
            />
          )}
        </Loading>
      </Panel>
      <Panel
        id="dedicated"
        title="Dedicated nodes"
        aside={
          <ActionButton needs="provision" tone="quiet" spec={() => addDedicatedNode(store)}>
            Add dedicated node
          </ActionButton>
        }
      >
        <Loading of={nodes.value}>
          {({ items }) => (
            <Table
              label="Dedicated nodes"
              rows={items}
              keyOf={(row) => row.name}
              columns={[
                { title: 'Name', cell: (row) => row.name },
                { title: 'Subscription', cell: (row) => <SubscriptionLink name={row.subscription} /> },
                { title: 'RPC', cell: (row) => <code>{row.rpc}</code>, isMinor: true },
                {
                  title: '',
                  align: 'right',
                  cell: (row) => (
                    <>
                      <ActionButton
                        needs="provision"
                        tone="quiet"
                        label={`Assign ${row.name}`}
                        spec={() => assignNode(store, row.name, row.subscription)}
                      >
                        Assign
                      </ActionButton>
                      <ActionButton
                        needs="provision"
                        tone="quiet"
                        label={`Remove ${row.name}`}
                        spec={() => removeNode(store, row.name)}
                      >
                        Remove
                      </ActionButton>
                    </>
                  ),
                },
              ]}
              none={<p>No dedicated nodes. Add one and assign it to a subscription: only that one uses it.</p>}
            />
          )}
        </Loading>
      </Panel>
    </>
  )
}
