import { createManualClock } from '../../core/clock.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { StoreProcess } from '../store/process.ts'
import type { StoreRequest } from '../store/protocol.ts'
import { type BackfillStatus, startBackfill } from './backfill.ts'
import type { BlockFetch } from './block-fetch.ts'
import { addRange, type SlotRange } from './slot-ranges.ts'

type Selects = (slot: number) => boolean

export type TestBackfillOptions = SlotRange & {
  /** Which blocks each node lists and has. */
  readonly nodes: readonly Selects[]
  readonly skipped?: Selects
  /** Blocks that the nodes list, and that cannot be fetched now. */
  readonly unavailable?: Selects
  /** Blocks that cannot be decoded, by how often the block of the slot was refused before. */
  readonly malformed?: (slot: number, refusals: number) => boolean
  readonly stored?: readonly SlotRange[]
  /** So many writes fail at first. */
  readonly failedWrites?: number
}

/** Calls of the nodes are about slots up to here. */
const TIP = 100_000

/** A backfill from nodes with chosen blocks into a store that records its rows, as the database process does. */
export function openTestBackfill(options: TestBackfillOptions) {
  const { nodes, skipped = () => false, unavailable = () => false, stored = [], failedWrites = 0, from, to } = options
  const { malformed = () => false } = options
  const refusals = new Map<number, number>()
  const decoded = new Map<number, number>()
  const rows = new Set<number>()
  let ranges = [...stored]
  let decodes = 0
  let writesToFail = failedWrites
  for (const range of stored) for (let slot = range.from; slot <= range.to; slot++) if (!skipped(slot)) rows.add(slot)

  const store = {
    async ask(request: StoreRequest) {
      switch (request.kind) {
        case 'decode': {
          const { slot } = request.raw
          decodes++
          if (malformed(slot, refusals.get(slot) ?? 0)) return { ok: false, fault: 'blockhash is no text' }
          decoded.set(request.id, slot)
          return { ok: true, link: linkOf(slot), transactions: 0 }
        }
        case 'write': {
          if (writesToFail-- > 0) throw new Error('no space')
          for (let slot = request.range.from; slot <= request.range.to; slot++) rows.delete(slot)
          for (const id of request.ids) rows.add(decoded.get(id) ?? Number.NaN)
          for (const id of request.ids) decoded.delete(id)
          ranges = addRange(ranges, request.range)
          return null
        }
        case 'forget':
          for (const id of request.ids) decoded.delete(id)
          return null
        default:
          throw new Error(`unexpected request ${request.kind}`)
      }
    },
  } as unknown as StoreProcess

  function linkOf(slot: number) {
    let parentSlot = slot - 1
    while (parentSlot > 0 && skipped(parentSlot)) parentSlot--
    // The first block of a chain has its own slot as that of its parent.
    return { slot, blockhash: `h${slot}`, parentSlot: Math.max(0, parentSlot), parentBlockhash: `h${parentSlot}` }
  }

  const clock = createManualClock()
  const fetch: BlockFetch = {
    ...fetchOf(nodes, skipped, unavailable),
    refuse: ({ slot }) => void refusals.set(slot, (refusals.get(slot) ?? 0) + 1),
  }
  const backfill = startBackfill({ from, to }, { fetch, store: () => store, clock, log: silentLogger })
  return {
    rows,
    decoded,
    ranges: () => ranges,
    decodes: () => decodes,
    /** The status at the end. */
    async end(): Promise<BackfillStatus> {
      for (let turns = 0; turns < 1_000 && backfill.status().state === 'running'; turns++)
        await clock.advanceAsync(1_000)
      await backfill.ended
      return backfill.status()
    },
  }
}

/** Calls to any node go to one after another. */
function fetchOf(nodes: readonly Selects[], skipped: Selects, unavailable: Selects): Omit<BlockFetch, 'refuse'> {
  let calls = 0
  const slotsOf = (has: Selects | undefined, { from, to }: SlotRange) => {
    const slots: number[] = []
    for (let slot = from; slot <= Math.min(to, TIP); slot++) if (has?.(slot) && !skipped(slot)) slots.push(slot)
    return slots
  }
  return {
    slotsIn: async (range) => slotsOf(nodes[calls++ % nodes.length], range),
    slotsOnAnyNode: async (range) =>
      [...new Set(nodes.flatMap((has) => slotsOf(has, range)))].toSorted((a, b) => a - b),
    async firstOnAnyNode() {
      for (let slot = 0; slot <= TIP; slot++) if (!skipped(slot) && nodes.some((has) => has(slot))) return slot
      return 0
    },
    async fetch(slot) {
      if (unavailable(slot)) return { kind: 'later', reason: 'error -32004' }
      if (!nodes.some((has) => has(slot))) return { kind: 'pruned' }
      // A block takes longer than a refusal.
      for (let turns = 0; turns < 8; turns++) await Promise.resolve()
      return { kind: 'block', raw: { slot, source: 'backfill', bytes: new Uint8Array() } }
    },
  }
}
