import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { LEAF_PREFIX, NODE_PREFIX } from './merkle.ts'
import { PROOF_ENTRIES, PROOF_ENTRY_BYTES, SET_SHREDS, type ShredHead, SIGNATURE_BYTES } from './shred.ts'

/**
 * What is known of one erasure set's merkle tree after some of its shreds were proven. A proof names the other nodes on its way, so every
 * proven shred makes the next one cheaper: instead of seven hashes a shred costs about two.
 */
export type SetProofs = {
  /**
   * Whether the shred at `at` belongs under `root`. The first time the whole way up is hashed; later only as far as what is known.
   * A shred of which any byte under the signature is wrong, its proof included, does not belong.
   */
  isUnder(bytes: Uint8Array, at: number, head: ShredHead): boolean
  readonly root: Uint8Array
}

const NODES = 4 * SET_SHREDS
/** Nodes are numbered as in a heap: the root is 1, the children of n are 2n and 2n + 1, leaf i is 64 + i. */
const LEAVES_AT = 2 * SET_SHREDS

/** The root the shred's own proof leads to; whether the leader signed it is the caller's question. */
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

export function createSetProofs(root: Uint8Array): SetProofs {
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
      // Upward until a node that is known; the root always is, as a whole.
      for (; known[node] === 0; level++) {
        own.push(hashed)
        const entryAt = proofAt + level * PROOF_ENTRY_BYTES
        hashed = node % 2 === 0 ? join(hashed, 0, bytes, entryAt) : join(bytes, entryAt, hashed, 0)
        node >>= 1
      }
      if (node === 1 ? Buffer.compare(hashed, root) !== 0 : !isNode(node, hashed, 0)) return false
      // Above it the proof repeats what is known. What is not known there cannot be: a known node's sibling came with it.
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

/** Data shreds first, code shreds after. */
function positionOf({ layout, index, setIndex }: ShredHead): number {
  return index - setIndex + (layout.kind === 'data' ? 0 : SET_SHREDS)
}

const leafInput = Buffer.alloc(LEAF_PREFIX.length + 1228)
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
