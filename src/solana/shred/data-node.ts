import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { copyBytes } from '../../core/copy-bytes.ts'
import { LEAF_PREFIX, NODE_PREFIX } from './merkle.ts'
import { DATA_SHRED_BYTES, FEC_SET_DATA_SHREDS, PROOF_ENTRY_BYTES, ROOT_BYTES } from './shred.ts'

/** Erasure shards of all 32 data shreds of a FEC set, wherever they are in `bytes`. */
export type DataShards = {
  readonly bytes: Uint8Array
  readonly length: number
  /** Where the shard of each data shred begins. */
  readonly at: Int32Array
  readonly chainedRoot: Uint8Array
}

const leafInput = Buffer.alloc(LEAF_PREFIX.length + DATA_SHRED_BYTES)
leafInput.set(LEAF_PREFIX)
const nodeInput = Buffer.alloc(NODE_PREFIX.length + 2 * PROOF_ENTRY_BYTES)
nodeInput.set(NODE_PREFIX)

/**
 * The node of the merkle tree above all data shreds, in its first 20 bytes. It is the last entry in the proof of every coding shred, so rebuilt
 * data shreds are proven by one coding shred, without rebuilding the other half of the set.
 */
export function dataNodeOf({ bytes, length, at, chainedRoot }: DataShards): Uint8Array {
  const leafBytes = LEAF_PREFIX.length + length + ROOT_BYTES
  leafInput.set(chainedRoot, LEAF_PREFIX.length + length)
  let level: Uint8Array[] = []
  for (let i = 0; i < FEC_SET_DATA_SHREDS; i++) {
    const from = at[i] as number
    copyBytes(bytes, from, from + length, leafInput, LEAF_PREFIX.length)
    level.push(hash('sha256', leafInput.subarray(0, leafBytes), 'buffer'))
  }
  while (level.length > 1) {
    const above: Uint8Array[] = []
    for (let i = 0; i < level.length; i += 2) above.push(join(level[i] as Uint8Array, level[i + 1] as Uint8Array))
    level = above
  }
  return (level[0] as Uint8Array).subarray(0, PROOF_ENTRY_BYTES)
}

function join(left: Uint8Array, right: Uint8Array): Uint8Array {
  for (let i = 0; i < PROOF_ENTRY_BYTES; i++) {
    nodeInput[NODE_PREFIX.length + i] = left[i] as number
    nodeInput[NODE_PREFIX.length + PROOF_ENTRY_BYTES + i] = right[i] as number
  }
  return hash('sha256', nodeInput, 'buffer')
}
