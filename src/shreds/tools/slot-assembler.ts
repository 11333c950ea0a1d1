import { isCompleteSlot } from '../../solana/shred/deshred.ts'
import { isSignedBy, rootOf } from '../../solana/shred/merkle.ts'
import { recoverFecSet } from '../../solana/shred/recover.ts'
import {
  type DataShred,
  FEC_SET_DATA_SHREDS,
  isLastInSlot,
  parseShred,
  positionInFecSet,
  type Shred,
  type ShredFault,
  signatureOf,
} from '../../solana/shred/shred.ts'
import { SLOT_MS_DEFAULT } from '../../solana/slot-pace.ts'
import { createLeaders, type LeaderRange } from '../relay/leaders.ts'
import { type RebuiltBlock, rebuildBlock } from './rebuild-block.ts'

/** Collects shreds by slot, recovers missing ones, and rebuilds blocks, as a receiver of the stream does. */
export type SlotAssembler = {
  receive(packet: Uint8Array, atMs: number): ReceiveOutcome
  /** Closes the slots that are complete or too old and returns all closed slots, each once. */
  finish(): SlotSummary[]
  /** Returns the slots that were closed by a limit and not yet returned. */
  takeFinished(): SlotSummary[]
  /** Closes all slots. */
  finishAll(): SlotSummary[]
  readonly faults: ReadonlyMap<ShredFault, number>
}

export type ReceiveOutcome = 'new' | 'duplicate' | 'late' | 'malformed'

export type SignatureState =
  /** The leader signed every FEC set. */
  | 'good'
  | 'bad'
  /** The leader is not known. */
  | 'unknown'

/** The field names are those of the JSON output of `sluice shred listen` and `sluice shred inspect`. */
export type SlotSummary = {
  readonly slot: number
  /** By the shreds' headers; of a complete block by its last parent update, if it has one. */
  readonly parentSlot: number | undefined
  readonly version: number
  readonly data: number
  readonly coding: number
  /** Data shreds that did not arrive and were recovered from the others of their FEC set. */
  readonly recovered: number
  /** Data shreds that neither arrived nor could be recovered, up to the last index known. */
  readonly missing: number
  /** First and last index of each run of missing ones; at most GAPS_MAX runs. */
  readonly gaps: readonly (readonly [number, number])[]
  readonly duplicates: number
  readonly fecSets: number
  /** Shreds inconsistent with the others of their FEC set: damaged, forged, or of a leader that signed two versions. */
  readonly inconsistent: number
  readonly signature: SignatureState
  /** All data shreds are present or recovered. */
  readonly isComplete: boolean
  readonly block: RebuiltBlock | undefined
  readonly firstMs: number
  readonly lastMs: number
  /** When enough shreds had arrived to rebuild the complete block. */
  readonly completeMs: number | undefined
}

export type SlotAssemblerOptions = {
  /** Slots open at one time; beyond it the oldest is closed. */
  readonly slotsMax: number
  /** Shreds held at one time; beyond it the oldest slot is closed, even if it is the only one. */
  readonly shredsMax: number
  readonly leaders?: readonly LeaderRange[]
  readonly verifyTransactions?: boolean
  /** The length of a slot, where it is known. */
  readonly slotMs?: () => number
  /** Receives the entry batches of each complete block in order. */
  onBlock?(slot: number, batches: readonly Uint8Array[]): void
}

/** Shreds of one FEC set with the same signature and merkle root. */
type FecSet = {
  readonly fecSetIndex: number
  readonly shreds: Map<number, Shred>
  readonly isSigned: boolean | undefined
  data: readonly DataShred[] | undefined
  /** Recovery failed once because the result does not match the root; it is not repeated with every further shred. */
  isUnrecoverable: boolean
}

type OpenSlot = {
  readonly slot: number
  readonly version: number
  /** By FEC set index, signature and root. */
  readonly sets: Map<string, FecSet>
  /** Indexes of the FEC sets whose data shreds are all present. */
  readonly completeSets: Set<number>
  readonly firstMs: number
  lastMs: number
  completeMs: number | undefined
  data: number
  coding: number
  duplicates: number
  /** Index of the last data shred, once known. */
  lastIndex: number | undefined
}

/** Recently closed slots, to recognize shreds that arrive late. */
const CLOSED_MAX = 4096
const GAPS_MAX = 16
/** A slot is closed, complete or not, when a slot this much newer is open. */
const BEHIND_MS = 3200

export function createSlotAssembler(options: SlotAssemblerOptions): SlotAssembler {
  const leaders = createLeaders(options.leaders ?? [])
  const open = new Map<number, OpenSlot>()
  const closed = new Set<number>()
  const faults = new Map<ShredFault, number>()
  let finished: SlotSummary[] = []
  let held = 0

  function close(slot: OpenSlot): void {
    open.delete(slot.slot)
    held -= slot.data + slot.coding
    closed.add(slot.slot)
    if (closed.size > CLOSED_MAX) closed.delete(closed.values().next().value as number)
    finished.push(summaryOf(slot, options))
  }

  function slotOf(shred: Shred, atMs: number): OpenSlot {
    const known = open.get(shred.slot)
    if (known !== undefined) return known
    const slot: OpenSlot = {
      slot: shred.slot,
      version: shred.version,
      sets: new Map(),
      completeSets: new Set(),
      firstMs: atMs,
      lastMs: atMs,
      completeMs: undefined,
      data: 0,
      coding: 0,
      duplicates: 0,
      lastIndex: undefined,
    }
    open.set(shred.slot, slot)
    return slot
  }

  function setOf(slot: OpenSlot, shred: Shred): FecSet {
    const root = rootOf(shred)
    const key = `${shred.fecSetIndex} ${latin1(signatureOf(shred))} ${latin1(root)}`
    const known = slot.sets.get(key)
    if (known !== undefined) return known
    const leader = leaders.of(shred.slot)?.key
    const isSigned = leader && isSignedBy(shred, root, leader)
    const set: FecSet = {
      fecSetIndex: shred.fecSetIndex,
      shreds: new Map(),
      isSigned,
      data: undefined,
      isUnrecoverable: false,
    }
    slot.sets.set(key, set)
    return set
  }

  /** Recovers the missing data shreds of the FEC set when it has enough shreds. */
  function complete(slot: OpenSlot, set: FecSet): void {
    if (set.data !== undefined || set.shreds.size < FEC_SET_DATA_SHREDS) return
    const own = [...set.shreds.values()].filter((shred): shred is DataShred => shred.kind === 'data')
    if (own.length === FEC_SET_DATA_SHREDS) set.data = own.toSorted((a, b) => a.index - b.index)
    else if (!set.isUnrecoverable) {
      const recovery = recoverFecSet([...set.shreds.values()])
      if (recovery.ok) set.data = recovery.data
      else set.isUnrecoverable = true
    }
    if (set.data === undefined) return
    slot.completeSets.add(set.fecSetIndex)
    for (const shred of set.data) if (isLastInSlot(shred)) slot.lastIndex = shred.index
  }

  function isComplete(slot: OpenSlot): boolean {
    return slot.lastIndex !== undefined && slot.completeSets.size * FEC_SET_DATA_SHREDS >= slot.lastIndex + 1
  }

  function takeFinished(): SlotSummary[] {
    const taken = finished
    finished = []
    return taken
  }

  return {
    faults,
    receive(packet, atMs) {
      const parsed = parseShred(Uint8Array.from(packet))
      if (!parsed.ok) {
        faults.set(parsed.reason, (faults.get(parsed.reason) ?? 0) + 1)
        return 'malformed'
      }
      const { shred } = parsed
      if (closed.has(shred.slot)) return 'late'
      const slot = slotOf(shred, atMs)
      const set = setOf(slot, shred)
      const position = positionInFecSet(shred)
      if (set.shreds.has(position)) {
        slot.duplicates += 1
        return 'duplicate'
      }
      set.shreds.set(position, shred)
      slot.lastMs = atMs
      held += 1
      if (shred.kind === 'data') {
        slot.data += 1
        if (isLastInSlot(shred)) slot.lastIndex = shred.index
      } else slot.coding += 1
      complete(slot, set)
      if (slot.completeMs === undefined && isComplete(slot)) slot.completeMs = atMs
      while (open.size > options.slotsMax || held > options.shredsMax)
        close(open.get(Math.min(...open.keys())) as OpenSlot)
      return 'new'
    },
    finish() {
      const newest = Math.max(...open.keys())
      const behind = Math.ceil(BEHIND_MS / (options.slotMs?.() ?? SLOT_MS_DEFAULT))
      // A complete slot stays open until all its shreds have arrived, so that its counts include them.
      for (const slot of [...open.values()]) {
        const isFull =
          slot.completeMs !== undefined && slot.data + slot.coding >= setsOf(slot) * 2 * FEC_SET_DATA_SHREDS
        if (isFull || slot.slot < newest - behind) close(slot)
      }
      return takeFinished()
    },
    takeFinished,
    finishAll() {
      for (const slot of [...open.values()].toSorted((a, b) => a.slot - b.slot)) close(slot)
      return takeFinished()
    },
  }
}

function summaryOf(slot: OpenSlot, options: SlotAssemblerOptions): SlotSummary {
  const data = new Map<number, DataShred>()
  const best = bestSets(slot)
  for (const set of best) {
    const shreds = set.data ?? [...set.shreds.values()].filter((shred): shred is DataShred => shred.kind === 'data')
    for (const shred of shreds) data.set(shred.index, shred)
  }
  const ordered = [...data.values()].toSorted((a, b) => a.index - b.index)
  const last = slot.lastIndex ?? ordered.at(-1)?.index ?? -1
  const gaps: [number, number][] = []
  let missing = 0
  let next = 0
  for (const index of [...ordered.map((shred) => shred.index).filter((each) => each <= last), last + 1]) {
    missing += index - next
    if (index > next && gaps.length < GAPS_MAX) gaps.push([next, index - 1])
    next = index + 1
  }
  const isComplete = isCompleteSlot(ordered)
  const first = ordered[0]
  const headerParent = first && slot.slot - first.parentOffset
  const block = isComplete ? rebuildBlock(ordered, headerParent, options) : undefined
  if (block !== undefined) options.onBlock?.(slot.slot, block.batches)
  const consistent = best.reduce((sum, { shreds }) => sum + shreds.size, 0)
  return {
    slot: slot.slot,
    parentSlot: block === undefined ? headerParent : block.summary.parentSlot,
    version: slot.version,
    data: slot.data,
    coding: slot.coding,
    recovered: Math.max(0, data.size - slot.data),
    missing,
    gaps,
    duplicates: slot.duplicates,
    fecSets: best.length,
    inconsistent: slot.data + slot.coding - consistent,
    signature: signatureStateOf(best),
    isComplete,
    block: block?.summary,
    firstMs: slot.firstMs,
    lastMs: slot.lastMs,
    completeMs: slot.completeMs,
  }
}

/** For each FEC set index the version that the leader signed, otherwise the one with most shreds. */
function bestSets(slot: OpenSlot): FecSet[] {
  const best = new Map<number, FecSet>()
  const rank = ({ isSigned, shreds }: FecSet): number => (isSigned === true ? 1000 : 0) + shreds.size
  for (const set of slot.sets.values()) {
    const other = best.get(set.fecSetIndex)
    if (other === undefined || rank(set) > rank(other)) best.set(set.fecSetIndex, set)
  }
  return [...best.values()]
}

function setsOf(slot: OpenSlot): number {
  return new Set([...slot.sets.values()].map(({ fecSetIndex }) => fecSetIndex)).size
}

function signatureStateOf(sets: readonly FecSet[]): SignatureState {
  if (sets.some(({ isSigned }) => isSigned === false)) return 'bad'
  return sets.every(({ isSigned }) => isSigned === true) ? 'good' : 'unknown'
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}
