import { formatCount, formatPercent, NONE } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Spark } from '../../../ui/spark.tsx'
import { Stat } from '../../../ui/stat.tsx'
import type { OverviewRecord } from '../../client/wire.ts'
import { type LivePoint, showRate } from '../../model/live.ts'

type Rate = Exclude<keyof LivePoint, 'atMs'>

/** The chain, the nodes and the calls of this moment, with lines since the page was opened. */
export function Glance({ overview, points }: { overview: OverviewRecord; points: readonly LivePoint[] }) {
  const { chain, nodes, sender, subscriptions } = overview
  const last = points.at(-1)
  const healthy = nodes.filter(({ state }) => state === 'healthy').length
  const evmPerSecond = chain.execution_transactions_per_second
  const all = Object.values(subscriptions).reduce((sum, count) => sum + count, 0)
  const landed = sender?.landed_share
  const line = (name: Rate, label: string) => <Trace points={points} name={name} label={label} />
  return (
    <Panel id="glance" title="Solana at a glance" aside={<span class="dim">Lines since this page was opened</span>}>
      <div class="stats glance">
        <Stat
          id="slot"
          label="slot"
          value={formatCount(chain.slot)}
          tone="lead"
          note={line('slots', 'Slots per second')}
        />
        <Stat id="slotLength" label="slot length" value={formatCount(chain.slot_ms)} unit="ms" />
        <Stat
          id="calls"
          label="calls"
          value={showRate(last?.calls)}
          unit="per second"
          note={line('calls', 'Calls per second')}
        />
        <Stat
          id="refused"
          label="refused"
          value={showRate(last?.refused)}
          unit="per second"
          tone={(last?.refused ?? 0) > 0 ? 'fair' : 'plain'}
          note={line('refused', 'Refused calls per second')}
        />
        {last?.transactions != null && (
          <Stat
            id="tps"
            label="transactions indexed"
            value={showRate(last.transactions)}
            unit="per second"
            note={line('transactions', 'Transactions indexed per second')}
          />
        )}
        {evmPerSecond != null && (
          <Stat id="evm" label="execution service" value={showRate(evmPerSecond)} unit="transactions/s" />
        )}
        <Stat
          id="nodes"
          label="nodes"
          value={nodes.length === 0 ? NONE : `${healthy} of ${nodes.length}`}
          unit="healthy"
          tone={nodes.length === 0 ? 'plain' : healthy < nodes.length ? 'fair' : 'good'}
        />
        {nodes.length > 0 && (
          <Stat
            id="lag"
            label="furthest behind"
            value={formatCount(last?.lagSlots)}
            unit="slots"
            note={line('lagSlots', 'Slots that the last node is behind')}
          />
        )}
        {sender !== null && (
          <Stat
            id="landed"
            label="landed by the sender"
            value={landed == null ? showRate(last?.landed) : formatPercent(100 * landed)}
            unit={landed == null ? 'per second' : '%'}
            note={line('landed', 'Transactions landed per second')}
          />
        )}
        <Stat id="connections" label="connections" value={formatCount(overview.live?.connections)} unit="open" />
        <Stat id="customers" label="customers" value={formatCount(overview.customers)} />
        <Stat
          id="subscriptions"
          label="active subscriptions"
          value={formatCount(subscriptions['active'])}
          unit={`of ${formatCount(all)}`}
        />
      </div>
    </Panel>
  )
}

function Trace({ points, name, label }: { points: readonly LivePoint[]; name: Rate; label: string }) {
  const values = points.flatMap((point) => point[name] ?? [])
  return values.length < 2 ? null : <Spark values={values} label={label} width={60} height={20} />
}
