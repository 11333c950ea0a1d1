import { copyBytes } from '../../core/copy-bytes.ts'
import type { Sha256 } from '../../core/sha256.ts'
import { createNodeSha256 } from '../crypto/node-sha256.ts'
import { LEAF_PREFIX, NODE_PREFIX } from './merkle.ts'
import {
  FEC_SET_DATA_SHREDS,
  PROOF_ENTRIES,
  PROOF_ENTRY_BYTES,
  ROOT_BYTES,
  type ShredHead,
  type ShredLayout,
  SIGNATURE_BYTES,
} from './shred.ts'

const NODES = 4 * FEC_SET_DATA_SHREDS
/** Nodes are numbered like a binary heap: the root is 1, the children of n are 2n and 2n + 1, leaf i is 64 + i. */
const LEAVES_AT = 2 * FEC_SET_DATA_SHREDS
const DIGEST_BYTES = 32

/** Puts the leaf of the shred at `at` into the output of a hash function. */
export type LeafHasher = { hash(bytes: Uint8Array, at: number, layout: ShredLayout): void }

/** Writes what the leaf of a shred is the hash of, and returns its length. */
export function writeLeafInput(
  bytes: Uint8Array,
  at: number,
  layout: ShredLayout,
  input: Uint8Array,
  inputAt: number,
): number {
  copyBytes(LEAF_PREFIX, 0, LEAF_PREFIX.length, input, inputAt)
  copyBytes(bytes, at + SIGNATURE_BYTES, at + layout.proofAt, input, inputAt + LEAF_PREFIX.length)
  return LEAF_PREFIX.length + layout.proofAt - SIGNATURE_BYTES
}

export function createLeafHasher({ input, run }: Sha256): LeafHasher {
  return { hash: (bytes, at, layout) => run(writeLeafInput(bytes, at, layout, input, 0)) }
}

/**
 * The known nodes of the merkle trees of many FEC sets, in memory that is allocated once; pages that are not used are not touched. A proof contains the
 * sibling nodes on its path, so every proven shred makes the next one cheaper: a shred costs about two hashes instead of seven.
 */
export class FecSetTrees {
  /** ROOT_BYTES for each tree. */
  readonly roots: Uint8Array
  readonly #nodes: Uint8Array
  readonly #known: Uint8Array
  readonly #sha256: Sha256
  readonly #leaves: LeafHasher
  /** The digests of one shred's path upward. */
  readonly #path = new Uint8Array((PROOF_ENTRIES + 1) * DIGEST_BYTES)

  /** `leaves` puts its results into the output of `sha256`. */
  constructor(trees: number, sha256: Sha256, leaves: LeafHasher = createLeafHasher(sha256)) {
    this.roots = new Uint8Array(trees * ROOT_BYTES)
    this.#nodes = new Uint8Array(trees * NODES * PROOF_ENTRY_BYTES)
    this.#known = new Uint8Array(trees * NODES)
    this.#sha256 = sha256
    this.#leaves = leaves
  }

  /** Begins a tree with this root. */
  begin(tree: number, root: Uint8Array, rootAt: number): void {
    copyBytes(root, rootAt, rootAt + ROOT_BYTES, this.roots, tree * ROOT_BYTES)
    this.#known.fill(0, tree * NODES, (tree + 1) * NODES)
    this.#put(tree * NODES + 1, root, rootAt)
  }

  /** Begins a tree with the root that the shred's own proof leads to. Does not check that the leader signed it. */
  beginWith(tree: number, bytes: Uint8Array, at: number, head: ShredHead): void {
    this.computeRoot(bytes, at, head)
    this.begin(tree, this.#sha256.output, 0)
    this.#putPath(tree, bytes, at, head, PROOF_ENTRIES)
  }

  /** The root that the shred's own proof leads to, in the output of the hash function. */
  computeRoot(bytes: Uint8Array, at: number, head: ShredHead): void {
    this.#hashUp(-1, bytes, at, head)
  }

  /** Whether the root computed last is that of the tree. */
  isComputedRoot(tree: number): boolean {
    return isEqualAt(this.roots, tree * ROOT_BYTES, this.#sha256.output, 0, ROOT_BYTES)
  }

  /**
   * Whether the shred at `at` is a leaf under the root. Hashes upward only to the first known node. A shred with any wrong byte covered by the signature,
   * including its proof, is not.
   */
  isUnder(tree: number, bytes: Uint8Array, at: number, head: ShredHead): boolean {
    const level = this.#hashUp(tree, bytes, at, head)
    const node = (LEAVES_AT + positionOf(head)) >> level
    // The root is known with all its bytes.
    if (node === 1 ? !this.isComputedRoot(tree) : !this.#isNode(tree * NODES + node, this.#sha256.output, 0))
      return false
    // Above that node the proof must repeat the known siblings: a known node's sibling is always known too.
    const proofAt = at + head.layout.proofAt
    for (let rest = level, above = node; rest < PROOF_ENTRIES; rest++, above >>= 1)
      if (!this.#isNode(tree * NODES + (above ^ 1), bytes, proofAt + rest * PROOF_ENTRY_BYTES)) return false
    this.#putPath(tree, bytes, at, head, level)
    return true
  }

  /** Hashes the shred upward to the first node that the tree knows, or to the root for tree -1. Returns the number of levels. */
  #hashUp(tree: number, bytes: Uint8Array, at: number, head: ShredHead): number {
    const { layout } = head
    const { input, output, run } = this.#sha256
    const path = this.#path
    this.#leaves.hash(bytes, at, layout)
    copyBytes(NODE_PREFIX, 0, NODE_PREFIX.length, input, 0)
    const left = NODE_PREFIX.length
    const right = left + PROOF_ENTRY_BYTES
    let node = LEAVES_AT + positionOf(head)
    let entryAt = at + layout.proofAt
    let level = 0
    for (; level < PROOF_ENTRIES && (tree < 0 || this.#known[tree * NODES + node] === 0); level++) {
      const digestAt = level * DIGEST_BYTES
      const own = node % 2 === 0 ? left : right
      const other = node % 2 === 0 ? right : left
      for (let i = 0; i < PROOF_ENTRY_BYTES; i++) {
        const byte = output[i] as number
        path[digestAt + i] = byte
        input[own + i] = byte
        input[other + i] = bytes[entryAt + i] as number
      }
      run(right + PROOF_ENTRY_BYTES)
      entryAt += PROOF_ENTRY_BYTES
      node >>= 1
    }
    return level
  }

  /** Adds the nodes of the path hashed last and their siblings, up to this level. */
  #putPath(tree: number, bytes: Uint8Array, at: number, head: ShredHead, levels: number): void {
    let node = tree * NODES + LEAVES_AT + positionOf(head)
    const first = tree * NODES
    let entryAt = at + head.layout.proofAt
    for (let level = 0; level < levels; level++) {
      this.#put(node, this.#path, level * DIGEST_BYTES)
      this.#put(first + ((node - first) ^ 1), bytes, entryAt)
      entryAt += PROOF_ENTRY_BYTES
      node = first + ((node - first) >> 1)
    }
  }

  #put(node: number, from: Uint8Array, at: number): void {
    this.#known[node] = 1
    const target = node * PROOF_ENTRY_BYTES
    for (let i = 0; i < PROOF_ENTRY_BYTES; i++) this.#nodes[target + i] = from[at + i] as number
  }

  #isNode(node: number, from: Uint8Array, at: number): boolean {
    return isEqualAt(this.#nodes, node * PROOF_ENTRY_BYTES, from, at, PROOF_ENTRY_BYTES)
  }
}

/** The known nodes of one FEC set's merkle tree. */
export type FecSetProofs = {
  /** As `FecSetTrees.isUnder`. */
  isUnder(bytes: Uint8Array, at: number, head: ShredHead): boolean
  readonly root: Uint8Array
}

export function createFecSetProofs(root: Uint8Array): FecSetProofs {
  const trees = new FecSetTrees(1, sharedSha256)
  trees.begin(0, root, 0)
  return { root, isUnder: (bytes, at, head) => trees.isUnder(0, bytes, at, head) }
}

/** The root that the shred's own proof leads to. Does not check that the leader signed it. */
export function rootOfPacket(bytes: Uint8Array, at: number, head: ShredHead): Uint8Array {
  anyTree.computeRoot(bytes, at, head)
  return sharedSha256.output.slice()
}

const sharedSha256 = createNodeSha256()
const anyTree = new FecSetTrees(1, sharedSha256)

/** Data shreds first, then coding shreds. */
function positionOf({ layout, index, fecSetIndex }: ShredHead): number {
  return index - fecSetIndex + (layout.kind === 'data' ? 0 : FEC_SET_DATA_SHREDS)
}

/** Whether both have the same bytes there. */
export function isEqualAt(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[aAt + i] !== b[bAt + i]) return false
  return true
}
