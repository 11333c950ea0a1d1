import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ContractFigures } from '../../../contract/execution-history.ts'
import { CopyButton } from '../../../ui/copy-button.tsx'
import { formatCompact, formatCount, formatPercent, formatTime } from '../../../ui/format.ts'
import { cleanName, NAME_CHARACTERS_MAX, shortHex } from '../../../ui/safe-text.ts'
import { Spark } from '../../../ui/spark.tsx'
import type { Response } from '../service.ts'
import { useStore } from '../store.ts'
import { ExplainedStat } from '../ui/explained-stat.tsx'
import { FactTable } from '../ui/fact-table.tsx'
import { Contract, Slot } from '../ui/hex.tsx'
import { Drawer } from './drawer.tsx'

/** The figures are requested again at this interval. */
const REFRESH_MS = 5000
const SPARK_BLOCKS = 60

/** One contract: how often it is used, its contended slots and its neighbours. */
export function ContractView({ address }: { address: string }) {
  const { labels, service, nowMs } = useStore()
  const figures = useSignal<Response<ContractFigures> | undefined>(undefined)
  useEffect(() => {
    figures.value = undefined
  }, [address])
  useEffect(() => {
    let left = false
    void service.get<ContractFigures>(`v1/contracts/${address}`).then((response) => {
      if (!left) figures.value = response
    })
    return () => {
      left = true
    }
  }, [address, Math.floor(nowMs.value / REFRESH_MS)])
  const label = labels.all.value.get(address)
  return (
    <Drawer title={<bdi>{label ?? shortHex(address, 8, 6)}</bdi>}>
      <p class="hex whole">
        {address}{' '}
        <CopyButton class="quiet-button" text={() => address}>
          Copy
        </CopyButton>
      </p>
      <LabelForm key={address} address={address} />
      <Figures response={figures.value} />
    </Drawer>
  )
}

function Figures({ response }: { response: Response<ContractFigures> | undefined }) {
  const { nowMs } = useStore()
  if (response === undefined) return <p class="dim">Loading…</p>
  if (!response.ok) {
    return (
      <p class="notice" role="status">
        {response.status === 404
          ? 'Nothing found: no block that is held uses this address.'
          : cleanName(response.error)}
      </p>
    )
  }
  const { window, storage, top_accesses: top, blocks, slots, neighbours } = response.value
  const shares = blocks.contended_slots.map((contended, at) => contended / Math.max(1, blocks.total_slots[at] ?? 1))
  return (
    <>
      <div class="stats">
        <ExplainedStat
          id="topCount"
          label="accesses"
          value={formatCompact(top?.count)}
          note={
            <span class="dim">
              {top === null
                ? 'not among the most accessed'
                : `rank ${top.rank}, ${formatPercent(top.share * 100)} % of all`}
            </span>
          }
        />
        <ExplainedStat
          id="storageAccesses"
          label="storage accesses"
          value={formatCompact(storage?.accesses)}
          note={
            storage === null ? undefined : (
              <Spark label="Storage accesses from block to block" values={blocks.accesses.slice(-SPARK_BLOCKS)} />
            )
          }
        />
        <ExplainedStat
          id="score"
          label="contended"
          value={formatPercent(storage === null ? undefined : storage.contention_score * 100)}
          unit="%"
          note={
            storage === null ? undefined : (
              <Spark label="Contended share from block to block" values={shares.slice(-SPARK_BLOCKS)} min={0} max={1} />
            )
          }
        />
        <ExplainedStat
          id="slotsPerBlock"
          label="contended slots"
          value={formatPercent(storage === null ? undefined : storage.contended_slots / storage.blocks)}
          unit="per block"
          note={<span class="dim">in {formatCount(storage?.blocks ?? 0)} blocks</span>}
        />
      </div>
      <p class="dim">
        From {formatCount(window.blocks)} blocks, {String(window.from_block)} to {String(window.to_block)},{' '}
        {formatTime(window.from_ms, nowMs.value)} to {formatTime(window.to_ms, nowMs.value)}.
        {storage === null && ' Its storage is not among the most used of these blocks.'}
      </p>
      <FactTable
        title="Contended slots"
        explains="slotTxns"
        subjects={['slot']}
        figures={['blocks', 'transactions']}
        rows={slots.map(({ slot, txn_count, blocks: count }) => ({
          key: slot,
          subjects: [<Slot slot={slot} />],
          figures: [formatCount(count), formatCount(txn_count)],
        }))}
        none="None of its slots is among the most contended of a block."
      />
      <FactTable
        title="Used together with"
        explains="sharedTxns"
        subjects={['contract']}
        figures={['shared transactions']}
        rows={neighbours.map(({ address: neighbour, shared_txn_count }) => ({
          key: neighbour,
          subjects: [<Contract address={neighbour} />],
          figures: [formatCount(shared_txn_count)],
        }))}
        none="No block lists it in a pair."
      />
    </>
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
