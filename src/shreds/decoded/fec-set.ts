import { createFecSetProofs, type FecSetProofs, isEqualAt, rootOfPacket } from '../../solana/shred/fec-set-proofs.ts'
import {
  FEC_SET_DATA_SHREDS,
  FLAG_DATA_COMPLETE,
  FLAG_LAST_IN_SLOT,
  PROOF_ENTRIES,
  PROOF_ENTRY_BYTES,
  ROOT_BYTES,
  type ShredHead,
  SIGNATURE_BYTES,
} from '../../solana/shred/shred.ts'

/** What the last data shred of a FEC set says about the data set. */
export const ENDING = { unknown: 0, continues: 1, ends: 2, endsSlot: 3 } as const
export type Ending = (typeof ENDING)[keyof typeof ENDING]

/** A shred as it arrived. */
export type ReceivedShred = {
  /** The packet is at `at`. */
  bytes: Uint8Array
  at: number
  readonly head: ShredHead
  /** It is proven that the leader signed it. */
  isVerified: boolean
}

const ALL_DATA = -1
const ROOT_AT = SIGNATURE_BYTES
const CHAINED_ROOT_AT = ROOT_AT + ROOT_BYTES
const DATA_NODE_AT = CHAINED_ROOT_AT + ROOT_BYTES
const IDENTITY_BYTES = DATA_NODE_AT + PROOF_ENTRY_BYTES

/**
 * One version of a FEC set: shreds with one signature and one merkle root. Usually there is one; a leader that signs two makes a conflict. Objects
 * are reused.
 */
export class FecSet {
  /** Number of the set in its slot. */
  index = 0
  /** Another version of the same set. */
  other: FecSet | undefined
  /** Block of its shreds; -1 when it has none: nothing held yet, or its data set is finished. */
  block = -1
  /** Shreds that arrived, a bit each. */
  data = 0
  coding = 0
  /** The cell of each shred that is held, data shreds first. */
  readonly cells: Uint8Array = new Uint8Array(2 * FEC_SET_DATA_SHREDS)
  held = 0
  parentOffset = -1
  ending: Ending = ENDING.unknown
  /** All data shreds are held. */
  isComplete = false
  wasRecovered = false
  /** The coding shreds do not match the data shreds: only data shreds that arrive can complete it. */
  isCodingMismatched = false
  /** The signature was checked by the relay. */
  isVerified = false
  /** First FEC set of the data set that this one belongs to; -1 while it is not known. */
  start = -1
  /** The version of the previous set that this one continues. */
  previous: FecSet | undefined
  isFinished = false
  isResigned = false
  version = 0
  /** Signature, root, chained root, and the node of the merkle tree above all data shreds. */
  readonly #identity = new Uint8Array(IDENTITY_BYTES)
  #proofs: FecSetProofs | undefined

  /** Begins with the first shred of a version. */
  begin({ bytes, at, head, isVerified }: ReceivedShred): void {
    const identity = this.#identity
    const { layout } = head
    this.index = head.fecSetIndex / FEC_SET_DATA_SHREDS
    this.isResigned = layout.resigned
    this.version = head.version
    this.isVerified = isVerified
    copy(bytes, at, identity, 0, SIGNATURE_BYTES)
    copy(rootOfPacket(bytes, at, head), 0, identity, ROOT_AT, ROOT_BYTES)
    copy(bytes, at + layout.chainedRootAt, identity, CHAINED_ROOT_AT, ROOT_BYTES)
  }

  /** Whether the packet belongs to this version. What the relay has not verified is proven to be under the root. */
  owns({ bytes, at, head, isVerified }: ReceivedShred): boolean {
    if (!isEqualAt(bytes, at, this.#identity, 0, SIGNATURE_BYTES)) return false
    if (isVerified && this.isVerified) return true
    this.#proofs ??= createFecSetProofs(this.#identity.slice(ROOT_AT, ROOT_AT + ROOT_BYTES))
    return this.#proofs.isUnder(bytes, at, head)
  }

  /** A leader can sign a tree of shreds that contradict each other. */
  isConsistent({ bytes, at, head }: ReceivedShred): boolean {
    const { layout, version, parentOffset } = head
    return (
      layout.resigned === this.isResigned &&
      version === this.version &&
      (layout.kind === 'code' || this.parentOffset === -1 || parentOffset === this.parentOffset) &&
      isEqualAt(bytes, at + layout.chainedRootAt, this.#identity, CHAINED_ROOT_AT, ROOT_BYTES)
    )
  }

  has({ head }: ReceivedShred): boolean {
    const { layout, index, fecSetIndex } = head
    return ((layout.kind === 'data' ? this.data : this.coding) & (1 << (index - fecSetIndex))) !== 0
  }

  /** Notes that the shred has arrived. */
  mark({ bytes, at, head }: ReceivedShred): void {
    const { layout, index, fecSetIndex, parentOffset, flags } = head
    const position = index - fecSetIndex
    if (layout.kind === 'data') {
      this.data |= 1 << position
      this.parentOffset = parentOffset
      if (position === FEC_SET_DATA_SHREDS - 1) this.ending = endingOf(flags)
      return
    }
    // The last entry of a coding shred's proof is the node above all data shreds.
    if (this.coding === 0) {
      const entryAt = at + layout.proofAt + (PROOF_ENTRIES - 1) * PROOF_ENTRY_BYTES
      copy(bytes, entryAt, this.#identity, DATA_NODE_AT, PROOF_ENTRY_BYTES)
    }
    this.coding |= 1 << position
  }

  get hasAllData(): boolean {
    return this.data === ALL_DATA
  }

  get endsDataSet(): boolean {
    return this.ending >= ENDING.ends
  }

  /** Whether the shreds of all sets up to this one are still held. Those that two versions have in common go with the first that is finished. */
  get isHeld(): boolean {
    return this.block !== -1 && this.previous?.isHeld !== false
  }

  /** Whether this set follows that one in the leader's chain. */
  follows(previous: FecSet): boolean {
    return isEqualAt(this.#identity, CHAINED_ROOT_AT, previous.#identity, ROOT_AT, ROOT_BYTES)
  }

  get chainedRoot(): Uint8Array {
    return this.#identity.subarray(CHAINED_ROOT_AT, CHAINED_ROOT_AT + ROOT_BYTES)
  }

  isDataNode(node: Uint8Array): boolean {
    return isEqualAt(node, 0, this.#identity, DATA_NODE_AT, PROOF_ENTRY_BYTES)
  }

  reset(): void {
    this.other = undefined
    this.block = -1
    this.data = 0
    this.coding = 0
    this.held = 0
    this.parentOffset = -1
    this.ending = ENDING.unknown
    this.isComplete = false
    this.wasRecovered = false
    this.isCodingMismatched = false
    this.start = -1
    this.previous = undefined
    this.isFinished = false
    this.#proofs = undefined
  }
}

export function endingOf(flags: number): Ending {
  if ((flags & FLAG_LAST_IN_SLOT) === FLAG_LAST_IN_SLOT) return ENDING.endsSlot
  return (flags & FLAG_DATA_COMPLETE) === 0 ? ENDING.continues : ENDING.ends
}

function copy(from: Uint8Array, fromAt: number, to: Uint8Array, toAt: number, length: number): void {
  for (let i = 0; i < length; i++) to[toAt + i] = from[fromAt + i] as number
}
