import { Buffer } from 'node:buffer'
import { hash, type KeyObject } from 'node:crypto'
import { verifyEd25519 } from '../crypto/ed25519.ts'
import {
  PROOF_ENTRIES,
  PROOF_ENTRY_BYTES,
  positionInFecSet,
  type Shred,
  type ShredLayout,
  SIGNATURE_BYTES,
  signatureOf,
} from './shred.ts'

/**
 * The merkle tree over the 64 shreds of a FEC set. Nodes below the root are truncated to their first 20 bytes; leaves and inner nodes are hashed
 * with different prefixes, so that neither can be mistaken for the other.
 */
export const LEAF_PREFIX = Buffer.from('\x00SOLANA_MERKLE_SHREDS_LEAF', 'latin1')
export const NODE_PREFIX = Buffer.from('\x01SOLANA_MERKLE_SHREDS_NODE', 'latin1')

export type MerkleTree = {
  /** 32 bytes. */
  readonly root: Uint8Array
  /** Levels from the leaves up to the two nodes under the root. */
  readonly levels: readonly (readonly Uint8Array[])[]
}

/** The leaf of a shred: everything between the signature and the proof. */
export function hashLeaf(bytes: Uint8Array, layout: ShredLayout): Uint8Array {
  const input = Buffer.allocUnsafe(LEAF_PREFIX.length + layout.proofAt - SIGNATURE_BYTES)
  input.set(LEAF_PREFIX)
  input.set(bytes.subarray(SIGNATURE_BYTES, layout.proofAt), LEAF_PREFIX.length)
  return hash('sha256', input, 'buffer')
}

export function buildTree(leaves: readonly Uint8Array[]): MerkleTree {
  const levels: Uint8Array[][] = []
  let level = [...leaves]
  while (level.length > 1) {
    levels.push(level)
    const nodes: Uint8Array[] = []
    for (let i = 0; i < level.length; i += 2) nodes.push(hashNode(level[i] as Uint8Array, level[i + 1] as Uint8Array))
    level = nodes
  }
  return { root: level[0] as Uint8Array, levels }
}

/** Writes the proof of the leaf at `position` into the shred. */
export function writeProof(bytes: Uint8Array, layout: ShredLayout, tree: MerkleTree, position: number): void {
  let at = layout.proofAt
  let index = position
  for (const level of tree.levels) {
    bytes.set((level[index ^ 1] as Uint8Array).subarray(0, PROOF_ENTRY_BYTES), at)
    at += PROOF_ENTRY_BYTES
    index >>= 1
  }
}

/** The root that the shred's own proof leads to. */
export function rootOf(shred: Shred): Uint8Array {
  const { bytes, layout } = shred
  let node = hashLeaf(bytes, layout)
  let index = positionInFecSet(shred)
  for (let entry = 0; entry < PROOF_ENTRIES; entry++) {
    const at = layout.proofAt + entry * PROOF_ENTRY_BYTES
    const other = bytes.subarray(at, at + PROOF_ENTRY_BYTES)
    node = index % 2 === 0 ? hashNode(node, other) : hashNode(other, node)
    index >>= 1
  }
  return node
}

/** Rule 1: the leader of the slot signed the root. The result is the same for all shreds of a FEC set with one signature and root. */
export function isSignedBy(shred: Shred, root: Uint8Array, leader: Uint8Array | KeyObject): boolean {
  return verifyEd25519(root, signatureOf(shred), leader)
}

function hashNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  const input = Buffer.allocUnsafe(NODE_PREFIX.length + 2 * PROOF_ENTRY_BYTES)
  input.set(NODE_PREFIX)
  input.set(left.subarray(0, PROOF_ENTRY_BYTES), NODE_PREFIX.length)
  input.set(right.subarray(0, PROOF_ENTRY_BYTES), NODE_PREFIX.length + PROOF_ENTRY_BYTES)
  return hash('sha256', input, 'buffer')
}
