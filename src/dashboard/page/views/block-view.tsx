import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { LifecycleRecord, RecentBlocks } from '../../../contract/execution-routes.ts'
import type { ContentionData, Stage } from '../../../contract/stream-events.ts'
import { formatAgo, formatCount, formatMs, formatPercent, formatTime } from '../../../ui/format.ts'
import { cleanName, shortHex } from '../../../ui/safe-text.ts'
import { STAGES } from '../../model/block-log.ts'
import type { ConflictFigures } from '../../model/history.ts'
import { heldText } from '../../model/search.ts'
import { VERDICT_TEXT, verdictOf } from '../../model/verdict.ts'
import { goTo } from '../go-to.ts'
import type { Response } from '../service.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { ExplainedStat } from '../ui/explained-stat.tsx'
import { FactTable } from '../ui/fact-table.tsx'
import { Contract, Slot } from '../ui/hex.tsx'
import { StageBar } from '../ui/stage-bar.tsx'
import { Drawer } from './drawer.tsx'
import { Transactions } from './transactions.tsx'

type BlockProps = { number: number; txn: number | undefined }

/** One block: its stages, contended slots and contract pairs. */
export function BlockView({ number, txn }: BlockProps) {
  return (
    <Drawer
      title={
        <>
          Block <span class="number">{number}</span>
        </>
      }
    >
      <nav class="steps" aria-label="Neighbouring blocks">
        <button type="button" onClick={() => goTo({ view: 'block', number: Math.max(0, number - 1) })}>
          ← {Math.max(0, number - 1)}
        </button>
        <button type="button" onClick={() => goTo({ view: 'block', number: number + 1 })}>
          {number + 1} →
        </button>
      </nav>
      {/* The key discards what was loaded for another block. The buttons above stay, and keep the focus. */}
      <Details key={number} number={number} txn={txn} />
    </Drawer>
  )
}

function Details({ number, txn }: BlockProps) {
  const { model, service, version } = useStore()
  const record = useSignal<Response<LifecycleRecord> | undefined>(undefined)
  const held = useSignal<RecentBlocks['held']>([])
  const older = useSignal<ContentionData | undefined>(undefined)
  void version.value
  const latest = model.blocks.find(number).at(-1)
  const shownId = record.value?.ok === true ? record.value.value.block_hash : undefined
  const newest = model.blocks.contention(number)
  // The record is that of the finalized proposal, which need not be the one that was executed last.
  const known = shownId === undefined || newest?.block_id === shownId ? newest : undefined
  const contention = known ?? older.value
  const conflicts = model.conflicts(number)

  // Requested again with each stage change, so that the record is never older than the lanes.
  useEffect(() => {
    let left = false
    void service.get<LifecycleRecord>(`v1/blocks/${number}/lifecycle`).then((response) => {
      // Stages that were shown stay when the service no longer holds them.
      if (!left && (response.ok || record.value?.ok !== true)) record.value = response
    })
    return () => {
      left = true
    }
  }, [latest?.stage, latest?.gasUsed])

  // Transactions are held longer than stages.
  const isHeld = held.value.some(({ from, to }) => from <= number && number <= to)
  const notice = isHeld
    ? 'The stages of this block are no longer held.'
    : `Nothing found: the block is too old or not proposed yet. ${held.value.length === 0 ? '' : heldText(held.value)}`
  const isUnknown = record.value?.ok === false && record.value.status === 404
  useEffect(() => {
    if (!isUnknown) return
    void service.get<RecentBlocks>('v1/blocks?count=1').then((response) => {
      if (response.ok) held.value = response.value.held
    })
  }, [isUnknown])

  useEffect(() => {
    older.value = undefined
    if (known !== undefined) return
    void service.get<ContentionData>(`v1/blocks/${number}/contention`).then((response) => {
      if (response.ok && response.value.block_number === number) older.value = response.value
    })
  }, [known === undefined])

  return (
    <>
      <Lifecycle response={record.value} timeMs={model.blocks.timeMs(number)} notice={notice} />
      {contention === undefined ? (
        <p class="dim">No contention figures: the block is not executed yet, lost events, or is no longer kept.</p>
      ) : (
        <ContentionFacts
          data={contention}
          conflicts={conflicts?.block_id === contention.block_id ? conflicts : undefined}
        />
      )}
      {(record.value?.ok === true || isHeld) && (
        <Transactions number={number} selected={txn} revision={`${shownId} ${latest?.gasUsed}`} />
      )}
    </>
  )
}

type LifecycleProps = {
  response: Response<LifecycleRecord> | undefined
  timeMs: number | undefined
  /** For a block whose stages are not held. */
  notice: string
}

function Lifecycle({ response, timeMs, notice }: LifecycleProps) {
  const { nowMs } = useStore()
  if (response === undefined) return <p class="dim">Loading…</p>
  if (!response.ok) {
    return (
      <p class="notice" role="status">
        {response.status === 404 ? notice : cleanName(response.error)}
      </p>
    )
  }
  const record = response.value
  const timings = record.stage_timings_ms
  return (
    <section aria-label="Lifecycle">
      <h3>
        Stages
        <Explain id="blockAge" />
      </h3>
      {timeMs !== undefined && (
        <p class="dim number" data-time={timeMs}>
          Proposed {formatTime(timeMs, nowMs.value)}, {formatAgo(nowMs.value - timeMs)}
        </p>
      )}
      <StageBar reachedMs={timings} />
      <table class="plain-table">
        <tbody>
          {STAGES.flatMap((stage: Stage) => {
            const atMs = timings[stage]
            if (atMs === undefined) return []
            return [
              <tr key={stage} class={`stage-${stage.toLowerCase()}`}>
                <th scope="row">
                  <span class="dot" aria-hidden="true" />
                  {stage}
                </th>
                <td class="right number dim">{timeMs === undefined ? '' : formatTime(timeMs + atMs, nowMs.value)}</td>
                <td class="right number">{stage === 'Proposed' ? '0' : `+${formatMs(atMs)}`}</td>
              </tr>,
            ]
          })}
        </tbody>
      </table>
      <div class="stats">
        <ExplainedStat id="txnCount" label="transactions" value={formatCount(record.txn_count)} />
        <ExplainedStat id="gas" label="gas used" value={formatCount(record.gas_used)} />
        <ExplainedStat id="wallTime" label="execution" value={formatMs(record.execution_time_ms)} />
      </div>
      <dl class="ids">
        <dt>consensus id</dt>
        <dd class="hex">{shortHex(record.block_hash, 16, 12)}</dd>
        {record.eth_block_hash !== undefined && (
          <>
            <dt>Ethereum hash</dt>
            <dd class="hex">{shortHex(record.eth_block_hash, 16, 12)}</dd>
          </>
        )}
      </dl>
    </section>
  )
}

function ContentionFacts({ data, conflicts }: { data: ContentionData; conflicts: ConflictFigures | undefined }) {
  const verdict = verdictOf(data.parallel_efficiency_pct)
  return (
    <section aria-label="Conflicts">
      <h3>
        Conflicts <span class="hex dim">of {shortHex(data.block_id, 8, 6)}</span>
      </h3>
      <div class="stats">
        <ExplainedStat
          id="efficiency"
          label="parallel efficiency"
          value={formatPercent(data.parallel_efficiency_pct)}
          unit="%"
          tone={verdict}
        />
        <ExplainedStat
          id="contendedRatio"
          label="contended slots"
          value={formatPercent(data.contention_ratio * 100)}
          unit="%"
          note={
            <span class="dim">
              {formatCount(data.contended_slot_count)} of {formatCount(data.total_unique_slots)}
            </span>
          }
        />
        <ExplainedStat id="wallTime" label="execution" value={formatMs(data.block_wall_time_ns / 1e6)} />
        <ExplainedStat id="txnTime" label="transaction time" value={formatMs(data.total_tx_time_ns / 1e6)} />
        {conflicts && (
          <ExplainedStat
            id="conflictShare"
            label="waiting on conflicts"
            value={formatPercent(conflicts.conflict_share * 100)}
            unit="%"
          />
        )}
        {conflicts && <ExplainedStat id="depth" label="parallel waves" value={formatCount(conflicts.depth)} />}
      </div>
      <p class={`verdict tone-${verdict}`}>{VERDICT_TEXT[verdict]}</p>
      <FactTable
        title="Contended slots"
        explains="slotTxns"
        subjects={['contract', 'slot']}
        figures={['transactions']}
        rows={data.top_contended_slots.map(({ address, slot, txn_count }) => ({
          key: `${address} ${slot}`,
          subjects: [<Contract address={address} />, <Slot slot={slot} />],
          figures: [formatCount(txn_count)],
        }))}
        none="None: no slot was touched by two transactions."
      />
      <FactTable
        title="Contracts touched together"
        explains="sharedTxns"
        subjects={['contract', 'contract']}
        figures={['transactions']}
        rows={data.contract_edges.map(({ contract_a, contract_b, shared_txn_count }) => ({
          key: `${contract_a} ${contract_b}`,
          subjects: [<Contract address={contract_a} />, <Contract address={contract_b} />],
          figures: [formatCount(shared_txn_count)],
        }))}
        none="None."
      />
    </section>
  )
}
