import { Buffer } from 'node:buffer'
import { createCodeShred } from './make.ts'
import { buildTree, hashLeaf, rootOf, writeProof } from './merkle.ts'
import { DATA_SHARDS, recoverShards, SET_SHARDS } from './reed-solomon.ts'
import {
  type DataShred,
  erasureShardOf,
  LAYOUTS,
  parseShred,
  positionInSet,
  ROOT_BYTES,
  type Shred,
  SIGNATURE_BYTES,
} from './shred.ts'

export type SetRecovery =
  | {
      readonly ok: true
      /** All 32, in order: those given and those recovered. */
      readonly data: readonly DataShred[]
      /** All 32 as bytes. */
      readonly code: readonly Uint8Array[]
      /** The root the whole set hashes to; the signature of every shred is to be checked against it. */
      readonly root: Uint8Array
    }
  | {
      readonly ok: false
      /** Fewer than 32; shreds of different sets or leaders; proofs, or the recovered bytes, do not lead to one root. */
      readonly reason: 'too-few' | 'inconsistent' | 'root-mismatch'
    }

/**
 * Rebuilds an erasure set from any 32 of its 64 shreds and proves it against the merkle root that the given shreds carry.
 * The retransmitter's signature of recovered shreds is that of the first shred given, as validators do.
 */
export function recoverSet(shreds: readonly Shred[]): SetRecovery {
  const [first] = shreds
  if (first === undefined) return { ok: false, reason: 'too-few' }
  const given: (Shred | undefined)[] = Array.from({ length: SET_SHARDS }, () => undefined)
  for (const shred of shreds) {
    if (!isSameSet(shred, first)) return { ok: false, reason: 'inconsistent' }
    given[positionInSet(shred)] = shred
  }
  const shards = recoverShards(given.map((shred) => shred && erasureShardOf(shred)))
  if (shards === undefined) return { ok: false, reason: 'too-few' }

  const dataLayout = first.layout.resigned ? LAYOUTS.resignedData : LAYOUTS.data
  const codeLayout = first.layout.resigned ? LAYOUTS.resignedCode : LAYOUTS.code
  const { slot, version, setIndex } = first
  const all = shards.map((shard, position) => {
    const known = given[position]
    if (known !== undefined) return known.bytes
    const isData = position < DATA_SHARDS
    const layout = isData ? dataLayout : codeLayout
    const bytes = isData
      ? new Uint8Array(layout.length)
      : createCodeShred({ layout, slot, version, setIndex, position: position - DATA_SHARDS }, shard)
    if (isData) bytes.set(shard, layout.erasureFrom)
    bytes.set(first.bytes.subarray(0, SIGNATURE_BYTES))
    bytes.set(
      first.bytes.subarray(first.layout.chainedRootAt, first.layout.chainedRootAt + ROOT_BYTES),
      layout.chainedRootAt,
    )
    if (layout.resigned)
      bytes.set(first.bytes.subarray(first.layout.length - SIGNATURE_BYTES), layout.length - SIGNATURE_BYTES)
    return bytes
  })

  const layoutAt = (position: number) => (position < DATA_SHARDS ? dataLayout : codeLayout)
  const tree = buildTree(all.map((bytes, position) => hashLeaf(bytes, layoutAt(position))))
  if (Buffer.compare(tree.root, rootOf(first)) !== 0) return { ok: false, reason: 'root-mismatch' }
  for (const [position, bytes] of all.entries())
    if (given[position] === undefined) writeProof(bytes, layoutAt(position), tree, position)

  const data: DataShred[] = []
  for (const [location, bytes] of all.slice(0, DATA_SHARDS).entries()) {
    const parsed = parseShred(bytes)
    // The leader may have signed a set whose hidden members break the rules; then it is no set.
    if (
      !parsed.ok ||
      parsed.shred.kind !== 'data' ||
      !isSameSet(parsed.shred, first) ||
      positionInSet(parsed.shred) !== location
    ) {
      return { ok: false, reason: 'inconsistent' }
    }
    data.push(parsed.shred)
  }
  return { ok: true, data, code: all.slice(DATA_SHARDS), root: tree.root }
}

function isSameSet(a: Shred, b: Shred): boolean {
  const aRootAt = a.layout.chainedRootAt
  const bRootAt = b.layout.chainedRootAt
  return (
    a.slot === b.slot &&
    a.setIndex === b.setIndex &&
    a.version === b.version &&
    a.layout.resigned === b.layout.resigned &&
    Buffer.compare(a.bytes.subarray(0, SIGNATURE_BYTES), b.bytes.subarray(0, SIGNATURE_BYTES)) === 0 &&
    Buffer.compare(a.bytes.subarray(aRootAt, aRootAt + ROOT_BYTES), b.bytes.subarray(bRootAt, bRootAt + ROOT_BYTES)) ===
      0
  )
}
