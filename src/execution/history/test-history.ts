import type { LifecycleRecord } from '../../contract/execution-routes.ts'
import type { ContentionData, Hex, Stage } from '../../contract/stream-events.ts'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { createSeededRandom, randomInt } from '../../core/random.ts'
import { toHex } from '../../evm/hex.ts'
import { idOf } from '../../evm/test-block.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { History, type HistoryDeps } from './history.ts'
import type { ProposalFigures } from './proposals.ts'

const MIB = 2 ** 20

export type TestHistoryOptions = {
  readonly folder?: string
  readonly blocksMax?: number
  readonly bytesMax?: number
  readonly isSimulated?: boolean
  readonly clock?: ManualClock
  readonly log?: HistoryDeps['log']
  readonly eventAgeMs?: () => number
}

export function openTestHistory(given: TestHistoryOptions = {}): Promise<History> {
  const { folder, blocksMax = 512, bytesMax = 16 * MIB, isSimulated = false } = given
  return History.open(
    { blocksMax, files: folder === undefined ? undefined : { folder, bytesMax, isSimulated } },
    {
      clock: given.clock ?? createManualClock(),
      log: given.log ?? silentLogger,
      eventAgeMs: given.eventAgeMs ?? (() => 0),
    },
  )
}

export function recordOf(number: number, stage: Stage, variant = 1, gasUsed: number | null = null): LifecycleRecord {
  const reached: Stage[] = ['Proposed', 'Voted', 'Finalized', 'Verified']
  const timings = stage === 'Rejected' ? ['Proposed', 'Rejected'] : reached.slice(0, reached.indexOf(stage) + 1)
  return {
    block_hash: idOf(number, variant),
    block_number: number,
    from_stage: stage === 'Proposed' ? null : 'Proposed',
    to_stage: stage,
    time_in_previous_stage_ms: stage === 'Proposed' ? null : 400,
    block_age_ms: stage === 'Proposed' ? 0 : 400,
    txn_count: 10 + (number % 7),
    gas_used: gasUsed,
    current_stage: stage,
    ...(gasUsed === null ? {} : { eth_block_hash: idOf(number, 0xe0 + variant), execution_time_ms: 12.345 }),
    stage_timings_ms: Object.fromEntries(timings.map((name, at) => [name, at * 400])),
    total_age_ms: 400,
  }
}

/** Addresses that look like real ones. */
const ADDRESSES = Array.from({ length: 50 }, (_, at) => toHex(createSeededRandom(at).bytes(20)))
const contractAt = (at: number): Hex => ADDRESSES[at] as Hex

/** Figures with lists of full length over random slots of 50 contracts. */
export function figuresOf(number: number, variant = 1): ProposalFigures {
  const random = createSeededRandom(number * 16 + variant)
  const any = (): Hex => contractAt(randomInt(random, ADDRESSES.length))
  const identity = { block_number: number, block_id: idOf(number, variant) }
  const list = <Item>(length: number, make: (at: number) => Item): Item[] => Array.from({ length }, (_, at) => make(at))
  const contracts = list(32, (at) => ({
    address: contractAt(at),
    total_slots: 10 + randomInt(random, 90),
    contended_slots: randomInt(random, 10),
    total_accesses: 1000 - at * 10 + randomInt(random, 10),
  }))
  const contention: ContentionData = {
    ...identity,
    block_wall_time_ns: 100_000_000 + randomInt(random, 10_000_000),
    total_tx_time_ns: 900_000_000 + randomInt(random, 10_000_000),
    parallel_efficiency_pct: 88 + random.float(),
    total_unique_slots: 5000 + randomInt(random, 1000),
    contended_slot_count: 500 + randomInt(random, 100),
    contention_ratio: random.float(),
    total_txn_count: 400,
    top_contended_slots: list(20, (at) => ({
      address: any(),
      slot: toHex(random.bytes(32)),
      txn_count: 40 - at,
      access_count: 90 - at,
    })),
    top_contended_contracts: contracts.slice(0, 15).map((contract) => ({ ...contract, contention_score: 0.5 })),
    contract_edges: list(15, (at) => ({ contract_a: any(), contract_b: any(), shared_txn_count: 30 - at })),
  }
  return {
    contention,
    conflicts: {
      ...identity,
      contended_with_writer: 9,
      evm_time_ns: 1,
      commit_time_ns: 1,
      depth: 12,
      waves: [300, 100],
      factor: 33,
      score: 97,
      conflict_share: 0.25,
    },
    accesses: { total_accesses: 40_000, contracts },
  }
}

/** A block from its proposal to its end; then to `stage`. */
export function feedBlock(
  history: History,
  number: number,
  given: { readonly variant?: number; readonly stage?: Stage; readonly timeMs?: number; readonly tps?: number } = {},
): void {
  const { variant = 1, stage = 'Proposed', timeMs, tps = 1000 + (number % 10) } = given
  const enter = (to: Stage, gasUsed: number | null): void => {
    const record = recordOf(number, to, variant, gasUsed)
    history.lifecycle(record, record, timeMs)
  }
  enter('Proposed', null)
  history.blockEnded({ id: idOf(number, variant), number, tps, recordedMs: timeMs })
  history.blockFolded(figuresOf(number, variant))
  history.lifecycleRecord(recordOf(number, 'Proposed', variant, 1_000_000 + number))
  if (stage !== 'Proposed') enter(stage, 1_000_000 + number)
}

const HOUR_BLOCKS = 9000
/** The last blocks have figures with lists. */
const HOUR_FIGURES = 600

/** An hour of blocks, one every 400 ms. */
export function feedHour(history: History, clock: ManualClock): void {
  for (let number = 1; number <= HOUR_BLOCKS; number++) {
    const record = recordOf(number, 'Proposed')
    history.lifecycle(record, record, undefined)
    history.blockEnded({ id: idOf(number), number, tps: (number * 7919) % 5000, recordedMs: undefined })
    if (number > HOUR_BLOCKS - HOUR_FIGURES) history.blockFolded(figuresOf(number))
    history.lifecycleRecord(recordOf(number, 'Verified', 1, (number * 104_729) % 30_000_000))
    clock.advance(400)
  }
}
