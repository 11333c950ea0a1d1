import { type SigningKey, signEd25519 } from '../crypto/ed25519.ts'
import { buildTree, hashLeaf, writeProof } from './merkle.ts'
import { encodeShards } from './reed-solomon.ts'
import {
  CODE_HEADER_BYTES,
  DATA_HEADER_BYTES,
  FLAG_DATA_COMPLETE,
  FLAG_LAST_IN_SLOT,
  INDEX_MAX,
  LAYOUTS,
  REFERENCE_TICK_MASK,
  SET_SHREDS,
  type ShredLayout,
} from './shred.ts'

export type BlockToShred = {
  readonly slot: number
  readonly parentSlot: number
  readonly version: number
  /** Encoded entry batches in order; each becomes whole sets and ends with DATA_COMPLETE. At least one. */
  readonly batches: readonly Uint8Array[]
  /** The root of the last set of the parent block, or any agreed hash before the first block. */
  readonly chainedRoot: Uint8Array
  readonly leader: SigningKey
  /** Ticks since the slot began, as a hint for repair. */
  readonly referenceTick?: number
}

export type ShreddedBlock = {
  /** One entry per erasure set, in order: 32 data and 32 code shreds. */
  readonly sets: readonly { readonly data: readonly Uint8Array[]; readonly code: readonly Uint8Array[] }[]
  /** What the next block chains to. */
  readonly lastRoot: Uint8Array
}

type SetPlan = {
  readonly payload: Uint8Array
  readonly isLast: boolean
  readonly resigned: boolean
  readonly complete: boolean
}

/**
 * The shreds of a whole block, as its leader would broadcast them: every set chained to the one before, signed by the leader.
 * Throws a RangeError when the block does not fit the indexes of a slot.
 */
export function makeShreds(block: BlockToShred): ShreddedBlock {
  const plans = planSets(block.batches)
  if (plans.length * SET_SHREDS > INDEX_MAX)
    throw new RangeError(`a block of ${plans.length} erasure sets is too large`)
  let chainedRoot = block.chainedRoot
  const sets = plans.map((plan, i) => {
    const set = makeSet(block, plan, i * SET_SHREDS, chainedRoot)
    chainedRoot = set.root
    return set
  })
  return { sets, lastRoot: chainedRoot }
}

/**
 * Cuts batches into sets. A set is filled before the next is begun; only the last of a batch may have room left. The slot's last set is
 * of the resigned kind, which holds less, unless its bytes fit the plain kind only.
 */
function planSets(batches: readonly Uint8Array[]): SetPlan[] {
  const capacity = capacityOf(LAYOUTS.data) * SET_SHREDS
  const plans: SetPlan[] = []
  for (const [i, batch] of batches.entries()) {
    for (let from = 0; from === 0 || from < batch.length; from += capacity) {
      const payload = batch.subarray(from, from + capacity)
      const complete = from + capacity >= batch.length
      const isLast = complete && i === batches.length - 1
      const resigned = isLast && payload.length <= capacityOf(LAYOUTS.resignedData) * SET_SHREDS
      plans.push({ payload, isLast, resigned, complete })
    }
  }
  return plans
}

function makeSet(block: BlockToShred, plan: SetPlan, setIndex: number, chainedRoot: Uint8Array) {
  const dataLayout = plan.resigned ? LAYOUTS.resignedData : LAYOUTS.data
  const codeLayout = plan.resigned ? LAYOUTS.resignedCode : LAYOUTS.code
  const data = makeDataShreds(block, plan, dataLayout, setIndex)
  const shards = data.map((shred) => shred.subarray(dataLayout.erasureFrom, dataLayout.chainedRootAt))
  const code = encodeShards(shards).map((shard, position) =>
    createCodeShred({ layout: codeLayout, slot: block.slot, version: block.version, setIndex, position }, shard),
  )

  const all = [...data, ...code]
  const layoutAt = (position: number) => (position < SET_SHREDS ? dataLayout : codeLayout)
  for (const [location, shred] of all.entries()) shred.set(chainedRoot, layoutAt(location).chainedRootAt)
  const tree = buildTree(all.map((shred, position) => hashLeaf(shred, layoutAt(position))))
  const signature = signEd25519(tree.root, block.leader)
  for (const [at, shred] of all.entries()) {
    writeProof(shred, layoutAt(at), tree, at)
    shred.set(signature)
  }
  return { data, code, root: tree.root }
}

function makeDataShreds(block: BlockToShred, plan: SetPlan, layout: ShredLayout, setIndex: number): Uint8Array[] {
  const capacity = capacityOf(layout)
  const tick = Math.min(block.referenceTick ?? 0, REFERENCE_TICK_MASK)
  return Array.from({ length: SET_SHREDS }, (_, i) => {
    const payload = plan.payload.subarray(i * capacity, (i + 1) * capacity)
    const ending = i < SET_SHREDS - 1 ? 0 : plan.isLast ? FLAG_LAST_IN_SLOT : plan.complete ? FLAG_DATA_COMPLETE : 0
    const shred = new Uint8Array(layout.length)
    const view = new DataView(shred.buffer)
    writeCommonHeader(view, { layout, slot: block.slot, version: block.version, setIndex, index: setIndex + i })
    view.setUint16(83, block.slot - block.parentSlot, true)
    shred[85] = tick | ending
    view.setUint16(86, DATA_HEADER_BYTES + payload.length, true)
    shred.set(payload, DATA_HEADER_BYTES)
    return shred
  })
}

/** A code shred without signature, chained root and proof. */
export function createCodeShred(
  head: { layout: ShredLayout; slot: number; version: number; setIndex: number; position: number },
  shard: Uint8Array,
): Uint8Array {
  const shred = new Uint8Array(head.layout.length)
  const view = new DataView(shred.buffer)
  writeCommonHeader(view, { ...head, index: head.setIndex + head.position })
  view.setUint16(83, SET_SHREDS, true)
  view.setUint16(85, SET_SHREDS, true)
  view.setUint16(87, head.position, true)
  shred.set(shard, CODE_HEADER_BYTES)
  return shred
}

function writeCommonHeader(
  view: DataView,
  head: { layout: ShredLayout; slot: number; index: number; version: number; setIndex: number },
): void {
  view.setUint8(64, head.layout.variant)
  view.setBigUint64(65, BigInt(head.slot), true)
  view.setUint32(73, head.index, true)
  view.setUint16(77, head.version, true)
  view.setUint32(79, head.setIndex, true)
}

/** Payload bytes of one data shred. */
function capacityOf(layout: ShredLayout): number {
  return layout.chainedRootAt - DATA_HEADER_BYTES
}
