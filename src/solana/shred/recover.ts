import { Buffer } from 'node:buffer'
import { createCodingShred } from './make.ts'
import { buildTree, hashLeaf, rootOf, writeProof } from './merkle.ts'
import { DATA_SHARDS, FEC_SET_SHARDS, recoverShards } from './reed-solomon.ts'
import {
  type DataShred,
  erasureShardOf,
  LAYOUTS,
  parseShred,
  positionInFecSet,
  ROOT_BYTES,
  type Shred,
  SIGNATURE_BYTES,
} from './shred.ts'

export type FecSetRecovery =
  | {
      readonly ok: true
      /** All 32 in order, given and recovered. */
      readonly data: readonly DataShred[]
      /** All 32 as bytes. */
      readonly code: readonly Uint8Array[]
      /** The root of the complete FEC set; the caller checks the signature against it. */
      readonly root: Uint8Array
    }
  | {
      readonly ok: false
      /** Fewer than 32; shreds of different sets or leaders; proofs, or the recovered bytes, do not lead to one root. */
      readonly reason: 'too-few' | 'inconsistent' | 'root-mismatch'
    }

/**
 * Rebuilds a FEC set from any 32 of its 64 shreds and proves it against the merkle root of the given shreds. Recovered shreds get the
 * retransmitter's signature of the first shred given, as in validators.
 */
export function recoverFecSet(shreds: readonly Shred[]): FecSetRecovery {
  const [first] = shreds
  if (first === undefined) return { ok: false, reason: 'too-few' }
  const given: (Shred | undefined)[] = Array.from({ length: FEC_SET_SHARDS }, () => undefined)
  for (const shred of shreds) {
    if (!isSameFecSet(shred, first)) return { ok: false, reason: 'inconsistent' }
    given[positionInFecSet(shred)] = shred
  }
  const shards = recoverShards(given.map((shred) => shred && erasureShardOf(shred)))
  if (shards === undefined) return { ok: false, reason: 'too-few' }

  const dataLayout = first.layout.resigned ? LAYOUTS.resignedData : LAYOUTS.data
  const codeLayout = first.layout.resigned ? LAYOUTS.resignedCode : LAYOUTS.code
  const { slot, version, fecSetIndex } = first
  const all = shards.map((shard, position) => {
    const known = given[position]
    if (known !== undefined) return known.bytes
    const isData = position < DATA_SHARDS
    const layout = isData ? dataLayout : codeLayout
    const bytes = isData
      ? new Uint8Array(layout.length)
      : createCodingShred({ layout, slot, version, fecSetIndex, position: position - DATA_SHARDS }, shard)
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
  for (const [position, bytes] of all.slice(0, DATA_SHARDS).entries()) {
    const parsed = parseShred(bytes)
    // The leader may have signed a FEC set whose recovered shreds break the rules.
    if (
      !parsed.ok ||
      parsed.shred.kind !== 'data' ||
      !isSameFecSet(parsed.shred, first) ||
      positionInFecSet(parsed.shred) !== position
    ) {
      return { ok: false, reason: 'inconsistent' }
    }
    data.push(parsed.shred)
  }
  return { ok: true, data, code: all.slice(DATA_SHARDS), root: tree.root }
}

function isSameFecSet(a: Shred, b: Shred): boolean {
  const aRootAt = a.layout.chainedRootAt
  const bRootAt = b.layout.chainedRootAt
  return (
    a.slot === b.slot &&
    a.fecSetIndex === b.fecSetIndex &&
    a.version === b.version &&
    a.layout.resigned === b.layout.resigned &&
    Buffer.compare(a.bytes.subarray(0, SIGNATURE_BYTES), b.bytes.subarray(0, SIGNATURE_BYTES)) === 0 &&
    Buffer.compare(a.bytes.subarray(aRootAt, aRootAt + ROOT_BYTES), b.bytes.subarray(bRootAt, bRootAt + ROOT_BYTES)) ===
      0
  )
}
