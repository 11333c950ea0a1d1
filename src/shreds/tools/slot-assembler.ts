import { createHash } from 'node:crypto'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { isWholeSlot, joinBatches } from '../../solana/shred/deshred.ts'
import { decodeBatch } from '../../solana/shred/entry.ts'
import { isSignedBy, rootOf } from '../../solana/shred/merkle.ts'
import { recoverSet } from '../../solana/shred/recover.ts'
import {
  type DataShred,
  isLastInSlot,
  parseShred,
  positionInSet,
  type Shred,
  type ShredFault,
  signatureOf,
} from '../../solana/shred/shred.ts'
import { verifySignatures } from '../../solana/transaction/transaction.ts'
import { createLeaders, type LeaderRange } from '../relay/leaders.ts'

/** Collects shreds by slot, recovers what is missing, and rebuilds blocks: what a receiver of the stream does with it. */
export type SlotAssembler = {
  take(packet: Uint8Array, atMs: number): Taken
  /** Slots that are done with, because they are whole or too old, are handed out once. */
  finish(): SlotSummary[]
  /** Only those that had to make room, or were finished before and not handed out. */
  takeFinished(): SlotSummary[]
  /** The same for all that are left. */
  finishAll(): SlotSummary[]
  readonly faults: ReadonlyMap<ShredFault, number>
}

export type Taken = 'new' | 'duplicate' | 'late' | 'malformed'

export type SignatureState =
  /** The leader signed every set. */
  | 'good'
  | 'bad'
  /** The leader is not known, so nobody can say. */
  | 'unknown'

export type SlotSummary = {
  readonly slot: number
  readonly parentSlot: number | undefined
  readonly version: number
  readonly data: number
  readonly code: number
  /** Data shreds that did not come and were worked out from the others. */
  readonly recovered: number
  /** Data shreds that neither came nor could be worked out, as far as the last one is known. */
  readonly missing: number
  /** First and last index of each run of missing ones; at most sixteen runs. */
  readonly gaps: readonly (readonly [number, number])[]
  readonly duplicates: number
  readonly sets: number
  /** Shreds that disagree with the others of their set: damaged or forged on the way, or of a leader that signed two versions. */
  readonly odd: number
  readonly signature: SignatureState
  readonly isComplete: boolean
  readonly block: RebuiltBlock | undefined
  readonly firstMs: number
  readonly lastMs: number
  /** When enough had come to rebuild the whole block. */
  readonly wholeMs: number | undefined
}

export type RebuiltBlock = {
  readonly entries: number
  readonly transactions: number
  /** Transactions whose signatures are not those of their signers; undefined when that was not looked at. */
  readonly badTransactions: number | undefined
  readonly markers: number
  /** Batches that could not be decoded. */
  readonly undecodable: number
  /** The hash of the last entry, which is the block's. */
  readonly blockhash: string | undefined
  readonly bytes: number
  /** SHA-256 of all entry batches in order, for comparing two receivers. */
  readonly sha256: string
}

export type SlotAssemblerOptions = {
  /** Slots open at one time; the oldest is closed to make room. */
  readonly slotsMax: number
  /** Shreds held at one time; beyond it the oldest slot is closed, though it may be the only one. */
  readonly shredsMax: number
  readonly leaders?: readonly LeaderRange[]
  readonly verifyTransactions?: boolean
  /** Handed each block's entry batches in order. */
  onBlock?(slot: number, batches: readonly Uint8Array[]): void
}

/** Shreds that carry one signature and lead to one root. */
type FecSetTable = {
  readonly setIndex: number
  readonly shreds: Map<number, Shred>
  readonly isSigned: boolean | undefined
  data: readonly DataShred[] | undefined
  /** What is missing was worked out once, and it was not what the root says: it is not tried with every further shred. */
  isUnrecoverable: boolean
}

type OpenSlot = {
  readonly slot: number
  readonly version: number
  /** By set index, signature and root. */
  readonly sets: Map<string, FecSetTable>
  /** Indexes of the sets whose data shreds are all there. */
  readonly completeSets: Set<number>
  readonly firstMs: number
  lastMs: number
  wholeMs: number | undefined
  data: number
  code: number
  duplicates: number
  /** Index of the last data shred, once known. */
  lastIndex: number | undefined
}

/** Slots that were closed lately, so that stragglers are told apart from news. */
const CLOSED_MAX = 4096
const GAPS_MAX = 16
const SET_DATA = 32

export function createSlotAssembler(options: SlotAssemblerOptions): SlotAssembler {
  const leaders = createLeaders(options.leaders ?? [])
  const open = new Map<number, OpenSlot>()
  const closed = new Set<number>()
  const faults = new Map<ShredFault, number>()
  let finished: SlotSummary[] = []
  let held = 0

  function close(slot: OpenSlot): void {
    open.delete(slot.slot)
    held -= slot.data + slot.code
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
      wholeMs: undefined,
      data: 0,
      code: 0,
      duplicates: 0,
      lastIndex: undefined,
    }
    open.set(shred.slot, slot)
    return slot
  }

  function setOf(slot: OpenSlot, shred: Shred): FecSetTable {
    const root = rootOf(shred)
    const key = `${shred.setIndex} ${latin1(signatureOf(shred))} ${latin1(root)}`
    const known = slot.sets.get(key)
    if (known !== undefined) return known
    const leader = leaders.keyOf(shred.slot)
    const isSigned = leader && isSignedBy(shred, root, leader)
    const set: FecSetTable = {
      setIndex: shred.setIndex,
      shreds: new Map(),
      isSigned,
      data: undefined,
      isUnrecoverable: false,
    }
    slot.sets.set(key, set)
    return set
  }

  /** Tries to have all data shreds of the set. */
  function complete(slot: OpenSlot, set: FecSetTable): void {
    if (set.data !== undefined || set.shreds.size < SET_DATA) return
    const own = [...set.shreds.values()].filter((shred): shred is DataShred => shred.kind === 'data')
    if (own.length === SET_DATA) set.data = own.toSorted((a, b) => a.index - b.index)
    else if (!set.isUnrecoverable) {
      const recovery = recoverSet([...set.shreds.values()])
      if (recovery.ok) set.data = recovery.data
      else set.isUnrecoverable = true
    }
    if (set.data === undefined) return
    slot.completeSets.add(set.setIndex)
    for (const shred of set.data) if (isLastInSlot(shred)) slot.lastIndex = shred.index
  }

  function isDone(slot: OpenSlot): boolean {
    return slot.lastIndex !== undefined && slot.completeSets.size * SET_DATA >= slot.lastIndex + 1
  }

  function takeFinished(): SlotSummary[] {
    const taken = finished
    finished = []
    return taken
  }

  return {
    faults,
    take(packet, atMs) {
      const parsed = parseShred(Uint8Array.from(packet))
      if (!parsed.ok) {
        faults.set(parsed.reason, (faults.get(parsed.reason) ?? 0) + 1)
        return 'malformed'
      }
      const { shred } = parsed
      if (closed.has(shred.slot)) return 'late'
      const slot = slotOf(shred, atMs)
      const set = setOf(slot, shred)
      const position = positionInSet(shred)
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
      } else slot.code += 1
      complete(slot, set)
      if (slot.wholeMs === undefined && isDone(slot)) slot.wholeMs = atMs
      while (open.size > options.slotsMax || held > options.shredsMax)
        close(open.get(Math.min(...open.keys())) as OpenSlot)
      return 'new'
    },
    finish() {
      const newest = Math.max(...open.keys())
      // A whole slot is kept a little longer: the rest of its shreds is still on its way and belongs to its counts.
      for (const slot of [...open.values()]) {
        const isFull = slot.wholeMs !== undefined && slot.data + slot.code >= setsOf(slot) * 2 * SET_DATA
        if (isFull || slot.slot < newest - SLOTS_BEHIND) close(slot)
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

/** A slot is closed, whole or not, when shreds of a slot so much newer come. */
const SLOTS_BEHIND = 8

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
  const isComplete = isWholeSlot(ordered)
  const first = ordered[0]
  return {
    slot: slot.slot,
    parentSlot: first && slot.slot - first.parentOffset,
    version: slot.version,
    data: slot.data,
    code: slot.code,
    recovered: Math.max(0, data.size - slot.data),
    missing,
    gaps,
    duplicates: slot.duplicates,
    sets: best.length,
    odd: slot.data + slot.code - best.reduce((sum, { shreds }) => sum + shreds.size, 0),
    signature: signatureStateOf(best),
    isComplete,
    block: isComplete ? rebuild(slot.slot, ordered, options) : undefined,
    firstMs: slot.firstMs,
    lastMs: slot.lastMs,
    wholeMs: slot.wholeMs,
  }
}

/** Of each set index the version that the leader signed, or else the one most shreds belong to. */
function bestSets(slot: OpenSlot): FecSetTable[] {
  const best = new Map<number, FecSetTable>()
  const rank = ({ isSigned, shreds }: FecSetTable): number => (isSigned === true ? 1000 : 0) + shreds.size
  for (const set of slot.sets.values()) {
    const other = best.get(set.setIndex)
    if (other === undefined || rank(set) > rank(other)) best.set(set.setIndex, set)
  }
  return [...best.values()]
}

function setsOf(slot: OpenSlot): number {
  return new Set([...slot.sets.values()].map(({ setIndex }) => setIndex)).size
}

function signatureStateOf(sets: readonly FecSetTable[]): SignatureState {
  if (sets.some(({ isSigned }) => isSigned === false)) return 'bad'
  return sets.every(({ isSigned }) => isSigned === true) ? 'good' : 'unknown'
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

function rebuild(slot: number, shreds: readonly DataShred[], options: SlotAssemblerOptions): RebuiltBlock {
  let kept: Uint8Array[] = []
  let [entries, transactions, bad, undecodable] = [0, 0, 0, 0]
  let markers = 0
  let blockhash: string | undefined
  for (const { bytes } of joinBatches(shreds)) {
    const decoded = decodeBatch(bytes)
    if (decoded.ok && decoded.kind === 'marker') {
      markers += 1
      // The leader changed its mind about the parent: what it sent before is void.
      if (decoded.marker.variant === 'update-parent') {
        kept = []
        ;[entries, transactions, bad, undecodable] = [0, 0, 0, 0]
      }
      continue
    }
    kept.push(bytes)
    if (!decoded.ok) {
      undecodable += 1
      continue
    }
    entries += decoded.entries.length
    for (const entry of decoded.entries) {
      transactions += entry.transactions.length
      if (options.verifyTransactions === true)
        bad += entry.transactions.filter((transaction) => !verifySignatures(transaction)).length
    }
    blockhash = encodeBase58(decoded.entries.at(-1)?.hash ?? new Uint8Array())
  }
  options.onBlock?.(slot, kept)
  const digest = createHash('sha256')
  for (const bytes of kept) digest.update(bytes)
  return {
    entries,
    transactions,
    badTransactions: options.verifyTransactions === true ? bad : undefined,
    markers,
    undecodable,
    blockhash,
    bytes: kept.reduce((sum, bytes) => sum + bytes.length, 0),
    sha256: digest.digest('hex'),
  }
}
