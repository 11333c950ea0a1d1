import { setBounded } from '../../core/bounded-map.ts'
import { decodeBase58 } from '../../solana/crypto/base58.ts'

/** The newest blockhashes with their heights. */
export type BlockhashQueue = {
  push(blockhash: string, height: number): void
  /** Blocks from the one with this hash to the one of height `headHeight`; undefined for a hash that this block does not keep. */
  ageAt(blockhash: string, headHeight: number): number | undefined
  /** Newest first, of blocks up to `height`. */
  upTo(height: number, count: number): Uint8Array[]
}

/** MAX_PROCESSING_AGE: a transaction with an older hash is not executed. */
export const BLOCKHASH_AGE_MAX = 150
/** Less by MAX_TRANSACTION_FORWARDING_DELAY: a simulated transaction has yet to be forwarded to the leader. */
export const SIMULATION_AGE_MAX = BLOCKHASH_AGE_MAX - 6
/** MAX_RECENT_BLOCKHASHES: a fee is known for hashes up to this age. */
const KEPT_AGE_MAX = 300
/** Kept beyond that for older commitments, and for the sysvars of older blocks, which are computed on first read. */
const OLDER_BLOCKS = 256
const HASHES_MAX = KEPT_AGE_MAX + OLDER_BLOCKS

export function createBlockhashQueue(): BlockhashQueue {
  const heights = new Map<string, number>()
  const newestFirst: { readonly height: number; readonly bytes: Uint8Array }[] = []
  return {
    push(blockhash, height) {
      setBounded(heights, blockhash, height, HASHES_MAX)
      newestFirst.unshift({ height, bytes: decodeBase58(blockhash) })
      newestFirst.splice(HASHES_MAX)
    },
    ageAt(blockhash, headHeight) {
      const age = headHeight - (heights.get(blockhash) ?? Number.POSITIVE_INFINITY)
      return age < 0 || age > KEPT_AGE_MAX ? undefined : age
    },
    upTo(height, count) {
      const first = newestFirst.findIndex((entry) => entry.height <= height)
      return first < 0 ? [] : newestFirst.slice(first, first + count).map(({ bytes }) => bytes)
    },
  }
}

export function isValidAge(age: number | undefined, ageMax: number): boolean {
  return age !== undefined && age <= ageMax
}
