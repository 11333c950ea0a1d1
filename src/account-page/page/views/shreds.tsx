import { formatCompact, formatCount } from '../../../ui/format.ts'
import { showBytes, showTime } from '../../../ui/model/time.ts'
import { LoadedView } from '../../../ui/page/loaded-view.tsx'
import { Panel } from '../../../ui/panel.tsx'
import { Facts } from '../../../ui/parts/facts.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { ShredsRecord } from '../../wire.ts'
import { useLoad } from '../load.ts'

const REFRESH_MS = 15_000

/** Where shreds are sent, and what was sent in the last 24 hours. */
export function Shreds() {
  const loaded = useLoad<ShredsRecord>('v1/shreds', { everyMs: REFRESH_MS })
  return (
    <Panel id="shreds" title="Shreds">
      <LoadedView of={loaded.value}>
        {({ destination, pending, state, last_fault: fault, delivery }) => (
          <>
            {destination === null && pending === null && (
              <p class="dim">No destination yet: send one IP address and UDP port to your operator.</p>
            )}
            <Facts
              facts={[
                ['Sent to', destination && <code>{destination.address}</code>],
                [
                  'Address',
                  destination && (destination.verified ? 'verified' : 'not verified: send its challenge back'),
                ],
                ['Paused', destination?.paused === true ? 'yes, by your operator' : ''],
                ['Changes to', pending && <code>{pending.address}</code>],
                ['State', state],
                ['Last fault', fault],
                ['Last 24 hours', delivery?.totals && `${formatCount(delivery.totals.packets)} packets`],
                ['Not sent', delivery?.totals && formatCount(delivery.totals.unsent)],
                ['Delay in the relay', delivery?.totals && showDelay(delivery.totals)],
              ]}
            />
            {delivery === null ? (
              <p class="dim">The delivery report is not kept by this process.</p>
            ) : (
              <Table
                label="Delivery by hour"
                rows={delivery.lines.toReversed()}
                keyOf={({ hour }) => hour}
                columns={[
                  { title: 'Hour (UTC)', cell: ({ hour }) => showTime(hour) },
                  { title: 'Packets', align: 'right', cell: ({ packets }) => formatCompact(packets) },
                  { title: 'Bytes', align: 'right', cell: ({ bytes }) => showBytes(bytes), isMinor: true },
                  { title: 'Not sent', align: 'right', cell: ({ unsent }) => formatCompact(unsent) },
                  { title: 'Newest slot', align: 'right', cell: (row) => formatCount(row.last_slot), isMinor: true },
                ]}
                none={<p>Nothing was sent in the last 24 hours.</p>}
              />
            )}
          </>
        )}
      </LoadedView>
    </Panel>
  )
}

function showDelay({
  delay_p50_ms: p50,
  delay_p99_ms: p99,
}: {
  delay_p50_ms: number | null
  delay_p99_ms: number | null
}) {
  return p50 === null || p99 === null ? null : `${p50} ms for half of the shreds, ${p99} ms for 99 of 100`
}
