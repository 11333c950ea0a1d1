import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { computeContractView } from '../../model/contract-graph.ts'
import { formatCompact, formatCount, formatPercent } from '../../model/format.ts'
import { NAME_CHARACTERS_MAX, shortHex } from '../../model/safe-text.ts'
import { useStore } from '../store.ts'
import { FactTable } from '../ui/fact-table.tsx'
import { Contract, Slot } from '../ui/hex.tsx'
import { Spark } from '../ui/spark.tsx'
import { Stat } from '../ui/stat.tsx'
import { Drawer } from './drawer.tsx'

const BLOCKS_MAX = 300

/** One contract: its contended slots and neighbours. */
export function ContractView({ address }: { address: string }) {
  const { model, labels, version } = useStore()
  void version.value
  const contentions = model.blocks.contentions(BLOCKS_MAX)
  const { node, slots, neighbours, scores } = computeContractView(contentions, address)
  const accesses = model.tops.accounts().find((row) => row.address === address)
  const label = labels.all.value.get(address)
  return (
    <Drawer title={<bdi>{label ?? shortHex(address, 8, 6)}</bdi>}>
      <p class="hex whole">{address}</p>
      <LabelForm key={address} address={address} />
      <div class="stats">
        <Stat
          id="score"
          label="contended"
          value={formatPercent(node && node.score * 100)}
          unit="%"
          note={<Spark label="Contention from block to block" values={scores.slice(-60)} min={0} max={1} />}
        />
        <Stat
          id="slotsPerBlock"
          label="contended slots"
          value={formatPercent(node && node.contendedSlots / node.blocks)}
          unit="per block"
          note={<span class="dim">in {formatCount(node?.blocks ?? 0)} blocks</span>}
        />
        <Stat
          id="topCount"
          label="accesses"
          value={formatCompact(accesses?.count)}
          note={<span class="dim">{accesses === undefined ? 'not in the top ten' : 'since the last reset'}</span>}
        />
      </div>
      <p class="dim">From the last {formatCount(contentions.length)} blocks this page has seen.</p>
      <FactTable
        title="Contended slots"
        explains="slotTxns"
        subjects={['slot']}
        figures={['blocks', 'transactions']}
        rows={slots.map(({ slot, txns, blocks }) => ({
          key: slot,
          subjects: [<Slot slot={slot} />],
          figures: [formatCount(blocks), formatCount(txns)],
        }))}
        none="None of its slots is among the most contended of a block."
      />
      <FactTable
        title="Neighbours"
        explains="sharedTxns"
        subjects={['contract']}
        figures={['shared transactions']}
        rows={neighbours.map(({ address: neighbour, sharedTxns }) => ({
          key: neighbour,
          subjects: [<Contract address={neighbour} />],
          figures: [formatCount(sharedTxns)],
        }))}
        none="No block lists it in a pair."
      />
    </Drawer>
  )
}

function LabelForm({ address }: { address: string }) {
  const { labels } = useStore()
  const text = useSignal('')
  useEffect(() => {
    text.value = labels.all.value.get(address) ?? ''
  }, [address])
  return (
    <form
      class="label-form"
      onSubmit={(event) => {
        event.preventDefault()
        labels.set(address, text.value)
        text.value = labels.all.value.get(address) ?? ''
      }}
    >
      <label>
        <span>Name in this browser</span>
        <input
          name="label"
          value={text.value}
          maxLength={NAME_CHARACTERS_MAX * 2}
          autoComplete="off"
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </label>
      <button type="submit">Save</button>
    </form>
  )
}
