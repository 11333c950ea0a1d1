import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { LEAF_PREFIX, NODE_PREFIX } from './merkle.ts'
import {
  CODING_SHRED_BYTES,
  FEC_SET_DATA_SHREDS,
  PROOF_ENTRIES,
  PROOF_ENTRY_BYTES,
  type ShredHead,
  SIGNATURE_BYTES,
} from './shred.ts'

/**
 * The known nodes of one FEC set's merkle tree. A proof contains the sibling nodes on its path, so every proven shred makes the next one
 * cheaper: a shred costs about two hashes instead of seven.
 */
export type FecSetProofs = {
  /**
   * Whether the shred at `at` is a leaf under `root`. Hashes upward only to the first known node. A shred with any wrong byte covered by the
   * signature, including its proof, is not.
   */
  isUnder(bytes: Uint8Array, at: number, head: ShredHead): boolean
  readonly root: Uint8Array
}

const NODES = 4 * FEC_SET_DATA_SHREDS
/** Nodes are numbered like a binary heap: the root is 1, the children of n are 2n and 2n + 1, leaf i is 64 + i. */
const LEAVES_AT = 2 * FEC_SET_DATA_SHREDS

/** The root that the shred's own proof leads to. Does not check that the leader signed it. */
export function rootOfPacket(bytes: Uint8Array, at: number, head: ShredHead): Uint8Array {
  let position = positionOf(head)
  let node = leafOf(bytes, at, head)
  let entryAt = at + head.layout.proofAt
  for (let level = 0; level < PROOF_ENTRIES; level++) {
    node = position % 2 === 0 ? join(node, 0, bytes, entryAt) : join(bytes, entryAt, node, 0)
    entryAt += PROOF_ENTRY_BYTES
    position >>= 1
  }
  return node
}

export function createFecSetProofs(root: Uint8Array): FecSetProofs {
  const nodes = new Uint8Array(NODES * PROOF_ENTRY_BYTES)
  const known = new Uint8Array(NODES)
  put(1, root, 0)

  function put(node: number, from: Uint8Array, at: number): void {
    known[node] = 1
    const target = node * PROOF_ENTRY_BYTES
    for (let i = 0; i < PROOF_ENTRY_BYTES; i++) nodes[target + i] = from[at + i] as number
  }

  function isNode(node: number, from: Uint8Array, at: number): boolean {
    const target = node * PROOF_ENTRY_BYTES
    for (let i = 0; i < PROOF_ENTRY_BYTES; i++) if (nodes[target + i] !== from[at + i]) return false
    return true
  }

  return {
    root,
    isUnder(bytes, at, head) {
      const own: Uint8Array[] = []
      const proofAt = at + head.layout.proofAt
      let node = LEAVES_AT + positionOf(head)
      let hashed = leafOf(bytes, at, head)
      let level = 0
      // Hashes upward to the first known node; the root is always known, with all of its bytes.
      for (; known[node] === 0; level++) {
        own.push(hashed)
        const entryAt = proofAt + level * PROOF_ENTRY_BYTES
        hashed = node % 2 === 0 ? join(hashed, 0, bytes, entryAt) : join(bytes, entryAt, hashed, 0)
        node >>= 1
      }
      if (node === 1 ? Buffer.compare(hashed, root) !== 0 : !isNode(node, hashed, 0)) return false
      // Above that node the proof must repeat the known siblings: a known node's sibling is always known too.
      for (let rest = level, above = node; rest < PROOF_ENTRIES; rest++, above >>= 1)
        if (!isNode(above ^ 1, bytes, proofAt + rest * PROOF_ENTRY_BYTES)) return false

      let position = LEAVES_AT + positionOf(head)
      for (let i = 0; i < level; i++, position >>= 1) {
        put(position, own[i] as Uint8Array, 0)
        put(position ^ 1, bytes, proofAt + i * PROOF_ENTRY_BYTES)
      }
      return true
    },
  }
}

/** Data shreds first, then coding shreds. */
function positionOf({ layout, index, fecSetIndex }: ShredHead): number {
  return index - fecSetIndex + (layout.kind === 'data' ? 0 : FEC_SET_DATA_SHREDS)
}

const leafInput = Buffer.alloc(LEAF_PREFIX.length + CODING_SHRED_BYTES)
leafInput.set(LEAF_PREFIX)
const nodeInput = Buffer.alloc(NODE_PREFIX.length + 2 * PROOF_ENTRY_BYTES)
nodeInput.set(NODE_PREFIX)

function leafOf(bytes: Uint8Array, at: number, { layout }: ShredHead): Uint8Array {
  const length = layout.proofAt - SIGNATURE_BYTES
  leafInput.set(bytes.subarray(at + SIGNATURE_BYTES, at + layout.proofAt), LEAF_PREFIX.length)
  return hash('sha256', leafInput.subarray(0, LEAF_PREFIX.length + length), 'buffer')
}

function join(left: Uint8Array, leftAt: number, right: Uint8Array, rightAt: number): Uint8Array {
  const from = NODE_PREFIX.length
  for (let i = 0; i < PROOF_ENTRY_BYTES; i++) {
    nodeInput[from + i] = left[leftAt + i] as number
    nodeInput[from + PROOF_ENTRY_BYTES + i] = right[rightAt + i] as number
  }
  return hash('sha256', nodeInput, 'buffer')
}
