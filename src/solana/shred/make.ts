import { type SigningKey, signEd25519 } from '../crypto/ed25519.ts'
import { buildTree, hashLeaf, writeProof } from './merkle.ts'
import { encodeShards } from './reed-solomon.ts'
import {
  CODING_COUNT_AT,
  CODING_HEADER_BYTES,
  DATA_COUNT_AT,
  DATA_HEADER_BYTES,
  FEC_SET_DATA_SHREDS,
  FEC_SET_INDEX_AT,
  FLAG_DATA_COMPLETE,
  FLAG_LAST_IN_SLOT,
  FLAGS_AT,
  INDEX_AT,
  INDEX_MAX,
  LAYOUTS,
  PARENT_OFFSET_AT,
  POSITION_AT,
  REFERENCE_TICK_MASK,
  type ShredLayout,
  SIZE_AT,
  SLOT_AT,
  VARIANT_AT,
  VERSION_AT,
} from './shred.ts'

export type BlockToShred = {
  readonly slot: number
  readonly parentSlot: number
  readonly version: number
  /** Encoded entry batches in order, at least one; each becomes complete FEC sets and ends with DATA_COMPLETE. */
  readonly batches: readonly Uint8Array[]
  /** The root of the last FEC set of the parent block, or any agreed hash before the first block. */
  readonly chainedRoot: Uint8Array
  readonly leader: SigningKey
  /** Ticks since the slot began, as a hint for repair. */
  readonly referenceTick?: number
}

export type ShreddedBlock = {
  /** One entry per FEC set, in order: 32 data and 32 coding shreds. */
  readonly sets: readonly { readonly data: readonly Uint8Array[]; readonly code: readonly Uint8Array[] }[]
  /** The root that the next block chains to. */
  readonly lastRoot: Uint8Array
}

type FecSetPlan = {
  readonly payload: Uint8Array
  readonly isLast: boolean
  readonly resigned: boolean
  readonly complete: boolean
}

/**
 * The shreds of a block as its leader broadcasts them: every FEC set is chained to the previous one and signed by the leader.
 * Throws a RangeError when the block has more shreds than a slot has indexes.
 */
export function makeShreds(block: BlockToShred): ShreddedBlock {
  const plans = planSets(block.batches)
  if (plans.length * FEC_SET_DATA_SHREDS > INDEX_MAX)
    throw new RangeError(`a block of ${plans.length} FEC sets is too large`)
  let chainedRoot = block.chainedRoot
  const sets = plans.map((plan, i) => {
    const set = makeSet(block, plan, i * FEC_SET_DATA_SHREDS, chainedRoot)
    chainedRoot = set.root
    return set
  })
  return { sets, lastRoot: chainedRoot }
}

/**
 * Splits batches into FEC sets. Only the last set of a batch may be partly filled. The last set of the slot is of the resigned kind, unless
 * its bytes fit only the other kind, which has more capacity.
 */
function planSets(batches: readonly Uint8Array[]): FecSetPlan[] {
  const capacity = capacityOf(LAYOUTS.data) * FEC_SET_DATA_SHREDS
  const plans: FecSetPlan[] = []
  for (const [i, batch] of batches.entries()) {
    for (let from = 0; from === 0 || from < batch.length; from += capacity) {
      const payload = batch.subarray(from, from + capacity)
      const complete = from + capacity >= batch.length
      const isLast = complete && i === batches.length - 1
      const resigned = isLast && payload.length <= capacityOf(LAYOUTS.resignedData) * FEC_SET_DATA_SHREDS
      plans.push({ payload, isLast, resigned, complete })
    }
  }
  return plans
}

function makeSet(block: BlockToShred, plan: FecSetPlan, fecSetIndex: number, chainedRoot: Uint8Array) {
  const dataLayout = plan.resigned ? LAYOUTS.resignedData : LAYOUTS.data
  const codeLayout = plan.resigned ? LAYOUTS.resignedCode : LAYOUTS.code
  const data = makeDataShreds(block, plan, dataLayout, fecSetIndex)
  const shards = data.map((shred) => shred.subarray(dataLayout.erasureFrom, dataLayout.chainedRootAt))
  const code = encodeShards(shards).map((shard, position) =>
    createCodingShred({ layout: codeLayout, slot: block.slot, version: block.version, fecSetIndex, position }, shard),
  )

  const all = [...data, ...code]
  const layoutAt = (position: number) => (position < FEC_SET_DATA_SHREDS ? dataLayout : codeLayout)
  for (const [position, shred] of all.entries()) shred.set(chainedRoot, layoutAt(position).chainedRootAt)
  const tree = buildTree(all.map((shred, position) => hashLeaf(shred, layoutAt(position))))
  const signature = signEd25519(tree.root, block.leader)
  for (const [position, shred] of all.entries()) {
    writeProof(shred, layoutAt(position), tree, position)
    shred.set(signature)
  }
  return { data, code, root: tree.root }
}

function makeDataShreds(block: BlockToShred, plan: FecSetPlan, layout: ShredLayout, fecSetIndex: number): Uint8Array[] {
  const capacity = capacityOf(layout)
  const tick = Math.min(block.referenceTick ?? 0, REFERENCE_TICK_MASK)
  return Array.from({ length: FEC_SET_DATA_SHREDS }, (_, i) => {
    const payload = plan.payload.subarray(i * capacity, (i + 1) * capacity)
    const ending =
      i < FEC_SET_DATA_SHREDS - 1 ? 0 : plan.isLast ? FLAG_LAST_IN_SLOT : plan.complete ? FLAG_DATA_COMPLETE : 0
    const shred = new Uint8Array(layout.length)
    const view = new DataView(shred.buffer)
    writeCommonHeader(view, { layout, slot: block.slot, version: block.version, fecSetIndex, index: fecSetIndex + i })
    view.setUint16(PARENT_OFFSET_AT, block.slot - block.parentSlot, true)
    shred[FLAGS_AT] = tick | ending
    view.setUint16(SIZE_AT, DATA_HEADER_BYTES + payload.length, true)
    shred.set(payload, DATA_HEADER_BYTES)
    return shred
  })
}

/** A coding shred without signature, chained root and proof. */
export function createCodingShred(
  head: { layout: ShredLayout; slot: number; version: number; fecSetIndex: number; position: number },
  shard: Uint8Array,
): Uint8Array {
  const shred = new Uint8Array(head.layout.length)
  const view = new DataView(shred.buffer)
  writeCommonHeader(view, { ...head, index: head.fecSetIndex + head.position })
  view.setUint16(DATA_COUNT_AT, FEC_SET_DATA_SHREDS, true)
  view.setUint16(CODING_COUNT_AT, FEC_SET_DATA_SHREDS, true)
  view.setUint16(POSITION_AT, head.position, true)
  shred.set(shard, CODING_HEADER_BYTES)
  return shred
}

function writeCommonHeader(
  view: DataView,
  head: { layout: ShredLayout; slot: number; index: number; version: number; fecSetIndex: number },
): void {
  view.setUint8(VARIANT_AT, head.layout.variant)
  view.setBigUint64(SLOT_AT, BigInt(head.slot), true)
  view.setUint32(INDEX_AT, head.index, true)
  view.setUint16(VERSION_AT, head.version, true)
  view.setUint32(FEC_SET_INDEX_AT, head.fecSetIndex, true)
}

/** Payload bytes of one data shred. */
function capacityOf(layout: ShredLayout): number {
  return layout.chainedRootAt - DATA_HEADER_BYTES
}
