import type { History, HistoryIncident, HistorySeconds } from '../../contract/execution-history.ts'
import type { Stage } from '../../contract/stream-events.ts'

type TestBlock = { readonly number: number; readonly stage?: Stage; readonly efficiency?: number }

type Given = Partial<HistorySeconds> & {
  readonly nowMs?: number
  readonly blocks?: readonly TestBlock[]
  readonly incidents?: readonly HistoryIncident[]
}

/** For tests: a history; a block is proposed each 400 ms before its end, with one contended slot and one pair of contracts. */
export function history({ nowMs, blocks = [], incidents = [], ...seconds }: Given): History {
  const tps = seconds.tps ?? []
  const none = tps.map(() => null)
  const from_ms = seconds.from_ms ?? 0
  const now_ms = nowMs ?? from_ms + tps.length * 1000
  const contracts = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`] as const
  const all = <Value>(value: (block: TestBlock, at: number) => Value): Value[] => blocks.map(value)
  const ids = all(({ number }) => `0x${number}` as const)
  return {
    now_ms,
    simulated: true,
    seconds: { from_ms, step_ms: 1000, tps, txns: none, gas_used: none, block_time_ms: none, ...seconds },
    blocks: {
      number: all(({ number }) => number),
      id: ids,
      time_ms: all((_, at) => now_ms - (blocks.length - at) * 400),
      block_time_ms: all(() => 400),
      txns: all(() => 3),
      gas_used: all(() => 63_000),
      gas_limit: all(() => 150_000_000),
      tps: all(() => 7),
      stage: all(({ stage = 'Verified' }) => stage),
      voted_ms: all(() => 400),
      finalized_ms: all(() => 800),
      verified_ms: all(({ stage = 'Verified' }) => (stage === 'Verified' ? 2000 : null)),
      rejected_ms: all(({ stage }) => (stage === 'Rejected' ? 1200 : null)),
      execution_ms: all(() => 20),
      block_wall_time_ns: all(() => 1),
      total_tx_time_ns: all(() => 2),
      parallel_efficiency_pct: all(({ efficiency = 80 }) => efficiency),
      total_unique_slots: all(() => 4),
      contended_slot_count: all(() => 1),
      contention_ratio: all(() => 0.25),
      conflict_share: all(() => 0.5),
      depth: all(() => 2),
    },
    contention: {
      slots: [[contracts[0], '0x1']],
      contracts,
      number: all(({ number }) => number),
      id: ids,
      top_contended_slots: all(() => [0, 3, 5]),
      top_contended_contracts: all(() => [0, 4, 1, 9]),
      contract_edges: all(() => [0, 1, 2]),
    },
    incidents,
  }
}
