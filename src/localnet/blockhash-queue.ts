import { decodeBase58 } from '../solana/base58.ts'

/** The newest blockhashes with their heights. A hash is good for 150 blocks after its own; 300 are remembered (Agave MAX_RECENT_BLOCKHASHES). */
export type BlockhashQueue = {
  push(blockhash: string, height: number): void
  /** The height at which this hash entered the chain, while it is remembered. */
  heightOf(blockhash: string): number | undefined
  /** Newest first. */
  newest(count: number): Uint8Array[]
}

/** MAX_PROCESSING_AGE. */
export const BLOCKHASH_AGE_MAX = 150
const REMEMBERED_MAX = 300

export function createBlockhashQueue(): BlockhashQueue {
  const heights = new Map<string, number>()
  const bytes: Uint8Array[] = []
  return {
    push(blockhash, height) {
      heights.set(blockhash, height)
      bytes.unshift(decodeBase58(blockhash))
      bytes.splice(REMEMBERED_MAX)
      // A Map keeps the order of insertion, so its first key is the oldest.
      if (heights.size > REMEMBERED_MAX) heights.delete(heights.keys().next().value as string)
    },
    heightOf: (blockhash) => heights.get(blockhash),
    newest: (count) => bytes.slice(0, count),
  }
}

/** Whether a hash of height `height` may still be used when the newest block has height `headHeight`. */
export function isRecent(height: number, headHeight: number): boolean {
  return height <= headHeight && headHeight - height <= BLOCKHASH_AGE_MAX
}
