import { BlockFold } from '../../evm/fold/block.ts'
import type { ContentionData } from '../../evm/fold/contention.ts'
import type { LifecycleChange, Stage } from '../../evm/fold/lifecycle-entry.ts'
import type { TopAccesses } from '../../evm/fold/top-accesses.ts'
import type { Hex } from '../../evm/hex.ts'
import type { EventBatch } from '../../evm/ring/event-batch.ts'
import { type FollowResult, RingFollower } from '../../evm/ring/follow.ts'
import { openRingFile } from '../../platform/ring-file/reader.ts'

/** A block as shown by `sluice ring watch`. */
export type WatchedBlock = {
  number: number
  hash: Hex
  stage: Stage
  txns: number
  gasUsed: number | null
  contention: ContentionData | undefined
  /** Why there are no figures. */
  reason: string | undefined
}

export type RingView = {
  path: string
  /** The state of the ring as text. */
  state: string
  /** Null where the two blocks before the newest one are not known. */
  tps: number | null
  cursor: number
  lagEvents: number
  /** Events per second since the last view. */
  eventsPerSecond: number
  stats: RingFollower['stats'] & Pick<BlockFold['stats'], 'blocksFolded' | 'blocksDropped' | 'blocksIncomplete'>
  /** Newest first. */
  blocks: readonly WatchedBlock[]
  top: TopAccesses
}

const BLOCKS_KEPT = 32
/** Batches per step, so that a full ring does not block drawing. */
const BATCHES_PER_STEP = 64
/** As often as the service resets its counters. */
const TOP_RESET_MS = 300_000

/** Follows a ring and keeps the latest blocks. `onBlock` is called for each block that has ended. */
export class RingWatch implements Disposable {
  readonly #path: string
  readonly #follower: RingFollower
  readonly #fold: BlockFold
  readonly #blocks = new Map<Hex, WatchedBlock>()
  #open: Hex | undefined
  #state = 'opening'
  #viewMs = 0
  #viewEvents = 0
  #resetAtMs: number | undefined

  constructor(path: string, onBlock: (block: WatchedBlock, tps: number | null) => void = () => {}) {
    this.#path = path
    this.#follower = new RingFollower(() => openRingFile(path))
    const end = (number: number, change: Partial<WatchedBlock>): void => {
      const block = this.#open === undefined ? undefined : this.#blocks.get(this.#open)
      if (block === undefined || block.number !== number) return
      Object.assign(block, change)
      onBlock(block, this.#fold.tps.value ?? null)
    }
    this.#fold = new BlockFold(
      { seed: 0 },
      {
        lifecycle: (change) => this.#step(change),
        tps: () => {},
        contention: (contention) => end(contention.block_number, { contention }),
        dropped: ({ number, reason }) => end(number, { reason }),
        incomplete: ({ number, reason }) => end(number, { reason }),
      },
    )
  }

  /** Reads the events since the last step. */
  step(nowMs: number): void {
    for (let batches = 0; batches < BATCHES_PER_STEP; batches++) if (!this.#handle(this.#follower.poll(nowMs))) break
    this.#resetAtMs ??= nowMs + TOP_RESET_MS
    if (nowMs < this.#resetAtMs) return
    this.#resetAtMs = nowMs + TOP_RESET_MS
    this.#fold.topAccesses.reset()
  }

  view(nowMs: number): RingView {
    const { stats, cursor, lagEvents } = this.#follower
    const seconds = Math.max(0.001, (nowMs - this.#viewMs) / 1000)
    const eventsPerSecond = this.#viewMs === 0 ? 0 : Math.round((stats.eventsRead - this.#viewEvents) / seconds)
    this.#viewMs = nowMs
    this.#viewEvents = stats.eventsRead
    const { blocksFolded, blocksDropped, blocksIncomplete } = this.#fold.stats
    return {
      path: this.#path,
      state: this.#state,
      tps: this.#fold.tps.value ?? null,
      cursor,
      lagEvents,
      eventsPerSecond,
      stats: { ...stats, blocksFolded, blocksDropped, blocksIncomplete },
      blocks: [...this.#blocks.values()].toReversed(),
      top: this.#fold.topAccesses.publish(),
    }
  }

  [Symbol.dispose](): void {
    this.#follower[Symbol.dispose]()
  }

  /** Returns whether there may be more events. */
  #handle(result: FollowResult): boolean {
    switch (result.kind) {
      case 'events':
        this.#state = 'reading'
        this.#fold.fold(this.#follower.batch as EventBatch)
        return true
      case 'gap':
        this.#state = `lost events ${result.from} to ${result.to}`
        this.#fold.gap()
        return true
      case 'opened':
        this.#state = result.previousSeqno === undefined ? 'reading' : 'reading a new ring'
        if (result.previousSeqno !== undefined) this.#fold.restart()
        return true
      case 'missing':
        this.#state = 'waiting: there is no ring at the path'
        return false
      case 'refused':
        this.#state = `refused: ${result.refusal.message}`
        return false
      case 'unreadable':
        this.#state = `cannot be read: ${result.message}`
        return false
      default:
        return false
    }
  }

  #step(change: LifecycleChange): void {
    const { block_hash, block_number, to_stage, txn_count, gas_used } = change
    if (to_stage === 'Proposed') {
      this.#open = block_hash
      const oldest = this.#blocks.size < BLOCKS_KEPT ? undefined : this.#blocks.keys().next().value
      if (oldest !== undefined) this.#blocks.delete(oldest)
      const none = { contention: undefined, reason: undefined }
      const block = { number: block_number, hash: block_hash, stage: to_stage, txns: txn_count, gasUsed: gas_used }
      this.#blocks.set(block_hash, { ...block, ...none })
      return
    }
    const block = this.#blocks.get(block_hash)
    if (block !== undefined) Object.assign(block, { stage: to_stage, gasUsed: gas_used })
  }
}
