import { recordOf } from '../../core/records.ts'
import type { ScannedTransaction } from '../../solana/transaction/scan.ts'

/**
 * What the engine emits. Indexes count the data shreds of a slot. Within a slot data sets come in the order in which they complete, so a later one
 * may come before an earlier one; the transactions inside a data set are in the order of the block. The report is the last event of a slot.
 */
export type DecodedEvent = DataSet | MarkerSet | SlotCompleted | Gap | SlotReport

/** An engine starts, or begins anew with other slots. What was not delivered before of the slots that were open is lost. */
export type EngineStarted = { readonly kind: 'started' }

/** The data shreds [startIndex, endIndex) of a slot: a batch of entries, from after one DATA_COMPLETE flag up to and including the next. */
export type DataSet = {
  readonly kind: 'data-set'
  readonly slot: number
  readonly startIndex: number
  /** Exclusive. */
  readonly endIndex: number
  /** The batch as it stands in the shreds, up to the end of its last entry: bincode of a vector of entries. */
  readonly entriesBytes: Uint8Array
  readonly entries: number
  /** In order, as offsets in `entriesBytes`. */
  readonly transactions: readonly ScannedTransaction[]
  /** When the shred arrived that completed the data set. */
  readonly arrivalNanos: number
  /** Whether a shred of it was rebuilt from the others of its FEC set. */
  readonly wasRecovered: boolean
  /** Whether the leader's signature was checked for every FEC set of it; false where the leader of the slot was not known. */
  readonly isVerified: boolean
  /** Undefined for a data set that is delivered whole. A large one comes in parts, each a batch of entries of its own. */
  readonly part: DataSetPart | undefined
}

export type DataSetPart = {
  /** It goes on inside the last entry of the part before; the bytes of both together are a batch. */
  readonly isContinuation: boolean
  /** Its last entry goes on in the next part. */
  readonly isContinued: boolean
  readonly isLast: boolean
}

/** A data set that is a block marker: its entry count is zero. */
export type MarkerSet = {
  readonly kind: 'marker'
  readonly slot: number
  readonly startIndex: number
  /** Exclusive. */
  readonly endIndex: number
  readonly bytes: Uint8Array
  /** The leader changed the parent of the block: all data sets of the slot before this marker are void, and none of them comes after it. */
  readonly isParentUpdate: boolean
  readonly arrivalNanos: number
}

/** Every data set up to LAST_IN_SLOT that is not void was delivered. Comes at once and at most once; the report of the slot follows when it is closed. */
export type SlotCompleted = {
  readonly kind: 'slot-completed'
  readonly slot: number
  readonly parentSlot: number | undefined
  readonly transactions: number
}

/** Data shreds of a closed slot whose transactions were not delivered. */
export type Gap = {
  readonly kind: 'gap'
  readonly slot: number
  /** Set where the gap is that of several slots, from this one to `slot`. */
  readonly firstSlot?: number
  readonly startIndex: number
  /** Exclusive; undefined where the last shred of the slot is not known. */
  readonly endIndex: number | undefined
  readonly reason: GapReason
  /** Data sets in it: at least so many. */
  readonly dataSets: number
}

export type GapReason =
  /** Shreds did not arrive and could not be recovered; or they are there, but not the shred before them, so their start is not known. */
  | 'missing'
  /** The shreds are there and do not contain valid entries. */
  | 'undecodable'
  /** Another slot names this one as its parent, and no shred of it arrived. */
  | 'slot-missing'
  /** No shred of it arrived in time, and no slot is known that names it or leaves it out: it is lost, or its leader skipped it. */
  | 'slot-unknown'
  /** Decoded, and larger than what one record for the readers holds. */
  | 'too-large'
  /** Decoded so late that it is not known what a node's own stream has delivered of the slot. */
  | 'too-late'

/** What became of a slot. */
export type SlotReport = {
  readonly kind: 'slot-report'
  readonly slot: number
  /** As the first data shred names it, or as a block marker has set it; undefined where none arrived, or the form of the marker is not known. */
  readonly parentSlot: number | undefined
  /** Transactions delivered. */
  readonly transactions: number
  /** Data sets delivered, without markers. */
  readonly dataSets: number
  readonly markers: number
  readonly parentUpdates: number
  /** At least so many. */
  readonly dataSetsLost: number
  /** Data sets that the shreds did not give and the stream of a node has delivered: at least so many. They are not lost. */
  readonly dataSetsFromUpstream?: number
  /** Up to the last one known. */
  readonly fecSets: number
  readonly fecSetsRecovered: number
  readonly fecSetsNotRecoverable: number
  /** Shreds accepted, without duplicates. */
  readonly shreds: number
  readonly duplicates: number
  readonly firstShredNanos: number
  readonly lastShredNanos: number
  /** Every data set up to LAST_IN_SLOT that is not void was delivered, from the shreds or by a node. */
  readonly isComplete: boolean
  /** The leader signed two versions of a FEC set, or shreds with different parents. */
  readonly isConflicting: boolean
  readonly closedBy: ClosedBy
}

/** Why a slot was closed: so many newer slots, no shred for so long, too many slots open, too many bytes held, end of the run. */
const CLOSED_BY = ['age', 'silence', 'count', 'memory', 'end'] as const
export type ClosedBy = (typeof CLOSED_BY)[number]

/** What became of a shred. */
export const SHRED_OUTCOMES = [
  'accepted',
  /** Breaks a rule of the format. */
  'malformed',
  /** Its slot is closed. */
  'late',
  'duplicate',
  /** Contradicts the other shreds of its FEC set: another kind, chained root, version or parent. */
  'inconsistent',
  /** The leader signed too many versions of FEC sets in this slot. */
  'too-many-versions',
  /** `bytesMax` or twice `slotsMax` is reached and no older slot can be closed now. */
  'memory-full',
] as const
export type ShredOutcome = (typeof SHRED_OUTCOMES)[number]

/** Counts of the engine since it was made. */
export type EngineCounts = {
  readonly shreds: Record<ShredOutcome, number>
  dataSets: number
  transactions: number
  markers: number
  gaps: number
  /** FEC sets of which data shreds were rebuilt. */
  fecSetsRecovered: number
  /** FEC sets whose coding shreds do not match their data shreds, or whose rebuilt shreds break a rule. */
  fecSetsRecoveryFailed: number
  /** Second and further versions of FEC sets. */
  fecSetsConflicting: number
  /** Complete data sets that were not delivered because another version of them was. */
  dataSetsConflicting: number
  /** Complete data sets that were not delivered because a change of the parent had made them void. */
  dataSetsVoid: number
  dataSetsUndecodable: number
  /** Slots with data shreds that name different parents. */
  parentsConflicting: number
  readonly slots: Record<ClosedBy | 'complete' | 'incomplete' | 'missing', number>
}

export function createEngineCounts(): EngineCounts {
  return {
    shreds: recordOf(SHRED_OUTCOMES, () => 0),
    dataSets: 0,
    transactions: 0,
    markers: 0,
    gaps: 0,
    fecSetsRecovered: 0,
    fecSetsRecoveryFailed: 0,
    fecSetsConflicting: 0,
    dataSetsConflicting: 0,
    dataSetsVoid: 0,
    dataSetsUndecodable: 0,
    parentsConflicting: 0,
    slots: recordOf([...CLOSED_BY, 'complete', 'incomplete', 'missing'] as const, () => 0),
  }
}
