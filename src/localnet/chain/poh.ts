import { hash } from 'node:crypto'
import type { Entry } from './model.ts'

export type Recording = {
  readonly previousHash: Uint8Array
  /** All signatures of each transaction, grouped by the entry that carries them. */
  readonly batches: readonly (readonly (readonly Uint8Array[])[])[]
  readonly ticks: number
}

/**
 * The hash chain of a block, as a leader records it: an entry with transactions mixes the merkle root of their
 * signatures into the running hash, a tick hashes it once more, and the hash of the last tick is the blockhash
 * (Agave `poh/src/poh.rs`, `entry/src/entry.rs`). One hash per tick, as a validator in low-power mode does.
 */
export function recordEntries(options: Recording): Entry[] {
  const entries: Entry[] = []
  let running = options.previousHash
  let firstTransaction = 0
  for (const batch of options.batches) {
    running = sha256(running, signatureRoot(batch.flat()))
    entries.push({ numHashes: 1n, hash: running, firstTransaction, transactionCount: batch.length })
    firstTransaction += batch.length
  }
  for (let tick = 0; tick < options.ticks; tick++) {
    running = sha256(running)
    entries.push({ numHashes: 1n, hash: running, firstTransaction, transactionCount: 0 })
  }
  return entries
}

/** Only the hash of the last entry. */
export function lastHashOf({ previousHash, batches, ticks }: Recording): Uint8Array {
  let running = previousHash
  for (const batch of batches) running = sha256(running, signatureRoot(batch.flat()))
  for (let tick = 0; tick < ticks; tick++) running = sha256(running)
  return running
}

/**
 * The hash that the first entry of an Alpenglow block follows. Without ticks an empty block would otherwise have the hash of its parent, and two banks of a
 * slot with the same transactions the same hash; `candidate` is 0 for the bank that survives.
 */
export function slotHash(previousHash: Uint8Array, slot: number, candidate = 0): Uint8Array {
  const bytes = new Uint8Array(9)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(slot), true)
  bytes[8] = candidate
  return sha256(previousHash, bytes)
}

const LEAF = Uint8Array.of(0)
const NODE = Uint8Array.of(1)

/** Solana's generic merkle tree (`merkle-tree/src/merkle_tree.rs`): prefixes 0 and 1, an unpaired last node is paired with itself. */
export function signatureRoot(signatures: readonly Uint8Array[]): Uint8Array {
  let level = signatures.map((signature) => sha256(LEAF, signature))
  while (level.length > 1) {
    const next: Uint8Array[] = []
    for (let i = 0; i < level.length; i += 2) {
      const left = level[i] as Uint8Array
      next.push(sha256(NODE, left, level[i + 1] ?? left))
    }
    level = next
  }
  return level[0] ?? new Uint8Array(32)
}

export function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  // The one-shot call takes half the time of a hash object, and text half the time of a buffer, whose 32 bytes would be
  // allocated outside the heap. A block computes at least 64 of these.
  const [only] = parts
  const text = hash('sha256', only && parts.length === 1 ? only : Buffer.concat(parts), 'latin1')
  const digest = new Uint8Array(32)
  for (let i = 0; i < 32; i++) digest[i] = text.charCodeAt(i)
  return digest
}
