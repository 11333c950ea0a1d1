import { formatCount, NONE } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Facts } from '../../../ui/parts/facts.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { IndexerRecord } from '../../client/wire.ts'
import { coverageRows } from '../../model/coverage.ts'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'

const REFRESH_MS = 10_000

export function IndexerView() {
  const loaded = useLoad<IndexerRecord>('indexerStatus', { everyMs: REFRESH_MS })
  return (
    <>
      <Heading title="Indexer" note="How much of the chain the tables contain." />
      <Loading
        of={loaded.value}
        missing={<p>The indexer is off. Set indexer.enabled = true in the configuration and restart.</p>}
      >
        {(indexer) => {
          const head = indexer.ingest?.head_slot
          const tip = indexer.ingest?.tip_slot
          return (
            <>
              <Panel id="state" title="State">
                <Facts
                  facts={[
                    ['Database', <Badge key="state" state={indexer.state} />],
                    ['Newest block in the tables', head == null ? 'none yet' : formatCount(head)],
                    ['Newest slot of the chain', tip == null ? 'unknown' : formatCount(tip)],
                    ['Behind', head == null || tip == null ? NONE : `${formatCount(Math.max(0, tip - head))} slots`],
                    ['Blocks written since the start', formatCount(indexer.ingest?.blocks)],
                    ['Running queries', formatCount(indexer.running_queries)],
                  ]}
                />
              </Panel>
              <Table
                label="Coverage"
                rows={coverageRows(indexer.coverage ?? [])}
                keyOf={(row) => row.table}
                columns={[
                  { title: 'Table', cell: (row) => <code>{row.table}</code> },
                  { title: 'From slot', align: 'right', cell: (row) => row.from },
                  { title: 'To slot', align: 'right', cell: (row) => row.to },
                  { title: 'Behind', align: 'right', cell: (row) => row.lag },
                  { title: 'Gaps', align: 'right', cell: (row) => row.gaps },
                ]}
                none={<p>No table has rows yet. Coverage appears when the first blocks are written.</p>}
              />
            </>
          )
        }}
      </Loading>
    </>
  )
}
