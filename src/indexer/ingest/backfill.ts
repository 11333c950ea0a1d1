import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { StoreProcess } from '../duckdb/process.ts'
import type { BlockFetch } from './block-fetch.ts'
import type { BlockLink } from './frontier.ts'
import type { SlotRange } from './slot-ranges.ts'

export type BackfillStatus = SlotRange & {
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  /** All blocks before this slot are written. */
  readonly nextSlot: number
  readonly blocks: number
  readonly startedMs: number
  /** Why it does not progress, or why it ended. */
  readonly message: string | undefined
}

export type BackfillDeps = {
  readonly fetch: BlockFetch
  readonly store: () => StoreProcess | undefined
  readonly clock: Clock
  readonly log: Logger
}

export type Backfill = { status(): BackfillStatus; stop(): void; readonly ended: Promise<void> }

/** Slots of one transaction. */
const PIECE_SLOTS = 32
const PARALLEL = 4
const RETRY_MS = 1_000
/** Attempts to write one piece before the backfill fails. */
const TRIES_MAX = 20
/** Ids of blocks in the store process; those of the live stream count from one. */
const FIRST_ID = 2 ** 40

/** Writes the finalized blocks of a range, oldest first. It may be stopped and started again at any point: written blocks stay. */
export function startBackfill(range: SlotRange, deps: BackfillDeps): Backfill {
  const { fetch, clock, log } = deps
  let state: BackfillStatus['state'] = 'running'
  let nextSlot = range.from
  let blocks = 0
  let message: string | undefined
  let lastId = FIRST_ID
  let previous: BlockLink | undefined
  const startedMs = clock.nowMs()

  async function writePiece(): Promise<void> {
    const store = deps.store()
    if (store === undefined) throw new Error('the database process is being restarted')
    const last = Math.min(range.to, nextSlot + PIECE_SLOTS - 1)
    const slots = await fetch.slotsIn({ from: nextSlot, to: last })
    if (slots === undefined) throw new Error('no node lists the blocks')
    const links: (BlockLink & { id: number })[] = []
    for (let at = 0; at < slots.length; at += PARALLEL) {
      links.push(...(await Promise.all(slots.slice(at, at + PARALLEL).map((slot) => fetchAndDecode(slot, store)))))
    }
    links.reduce((before: BlockLink | undefined, link) => {
      if (before !== undefined && (link.parentSlot !== before.slot || link.parentBlockhash !== before.blockhash))
        throw new Error(`block ${link.slot} does not follow ${before.slot}: one between them is missing`)
      return link
    }, previous)
    const end = links.at(-1)
    if (end !== undefined) {
      const covered = {
        from: previous === undefined ? Math.min(nextSlot, (links[0]?.parentSlot ?? 0) + 1) : nextSlot,
        to: end.slot,
      }
      await store.ask({
        kind: 'write',
        ids: links.map(({ id }) => id),
        name: `${covered.from}-${covered.to}:${end.blockhash}`,
        range: covered,
        finalizedSlot: end.slot,
        tipSlot: end.slot,
      })
      blocks += links.length
      previous = end
      nextSlot = end.slot + 1
    }
    // The parent link of the next block proves that slots after the last block are empty; at the end of the range no block follows.
    if (end === undefined || last === range.to) nextSlot = last + 1
  }

  async function fetchAndDecode(slot: number, store: StoreProcess): Promise<BlockLink & { id: number }> {
    const fetched = await fetch.fetch(slot)
    if (fetched.kind !== 'block')
      throw new Error(
        `block ${slot}: ${fetched.kind === 'later' ? fetched.reason : fetched.kind === 'pruned' ? 'pruned by every node' : 'no node has it'}`,
      )
    const id = ++lastId
    const response = await store.ask({ kind: 'decode', id, raw: fetched.raw })
    if (!response.ok) throw new Error(`block ${slot} cannot be decoded: ${response.fault}`)
    return { ...response.link, id }
  }

  async function run(): Promise<void> {
    let tries = 0
    while (state === 'running' && nextSlot <= range.to) {
      try {
        await writePiece()
        tries = 0
        message = undefined
      } catch (error) {
        message = error instanceof Error ? error.message : String(error)
        log.warn({ slot: nextSlot, reason: message }, 'backfill piece not written; trying again')
        if (++tries === TRIES_MAX) {
          state = 'failed'
          return
        }
        await new Promise<void>((resolve) => void clock.setTimer(RETRY_MS, resolve))
      }
    }
    if (state === 'running') state = 'done'
  }

  return {
    status: () => ({ ...range, state, nextSlot, blocks, startedMs, message }),
    stop() {
      if (state === 'running') state = 'stopped'
    },
    ended: run(),
  }
}
