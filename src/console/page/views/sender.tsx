import { formatCount, NONE } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import { Stat } from '../../../ui/stat.tsx'
import type { SenderRecord } from '../../client/wire.ts'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'

const REFRESH_MS = 5000
const LAMPORTS_PER_SOL = 1e9

export function SenderView() {
  const loaded = useLoad<SenderRecord>('senderStats', { everyMs: REFRESH_MS })
  return (
    <>
      <Heading title="Sender" note="Transactions since the start of the process, and how each path landed them." />
      <Loading
        of={loaded.value}
        missing={<p>The sender is off. Set sender.enabled = true in the configuration and restart.</p>}
      >
        {(sender) => (
          <>
            <Panel id="transactions" title="Transactions">
              <div class="stats">
                <Stat id="accepted" label="accepted" value={formatCount(sender.accepted)} />
                <Stat id="landed" label="landed" value={formatCount(sender.landed)} tone="good" />
                <Stat id="failed" label="failed on chain" value={formatCount(sender.failed)} />
                <Stat id="expired" label="expired" value={formatCount(sender.expired)} />
                <Stat id="pending" label="pending" value={formatCount(sender.pending)} />
                <Stat
                  id="tips"
                  label="tips"
                  value={(Number(sender.tip_lamports) / LAMPORTS_PER_SOL).toFixed(4)}
                  unit="SOL"
                />
              </div>
            </Panel>
            <Table
              label="Paths"
              rows={sender.paths}
              keyOf={(row) => row.path}
              columns={[
                { title: 'Path', cell: (row) => row.path },
                {
                  title: 'State',
                  cell: (row) => {
                    const state = sender.path_states?.find(({ path }) => path === row.path)
                    if (state === undefined) return NONE
                    return (
                      <>
                        <Badge state={state.is_open ? 'open' : 'closed'} />{' '}
                        <span class="dim minor">{state.message}</span>
                      </>
                    )
                  },
                },
                { title: 'Took', align: 'right', cell: (row) => formatCount(row.taken) },
                { title: 'Landed', align: 'right', cell: (row) => formatCount(row.landed) },
                { title: 'Median', align: 'right', cell: (row) => (row.p50_ms === null ? NONE : `${row.p50_ms} ms`) },
                {
                  title: 'p95',
                  align: 'right',
                  cell: (row) => (row.p95_ms === null ? NONE : `${row.p95_ms} ms`),
                  isMinor: true,
                },
              ]}
              none={<p>No path to a leader is configured.</p>}
            />
          </>
        )}
      </Loading>
    </>
  )
}
