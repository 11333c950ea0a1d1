import { decodeBase58 } from '../../solana/crypto/base58.ts'

/** The newest blockhashes with their heights. A hash is good for 150 blocks after its own; 300 are remembered (Agave MAX_RECENT_BLOCKHASHES). */
export type BlockhashQueue = {
  push(blockhash: string, height: number): void
  /** The height at which this hash entered the chain, while it is remembered. */
  heightOf(blockhash: string): number | undefined
  /** Newest first, of blocks up to `height`. */
  upTo(height: number, count: number): Uint8Array[]
}

/** MAX_PROCESSING_AGE. */
export const BLOCKHASH_AGE_MAX = 150
const REMEMBERED_MAX = 300
/** Kept beyond that for the sysvars of older blocks, which are made when somebody reads them. */
const OLDER_BLOCKS = 256

export function createBlockhashQueue(): BlockhashQueue {
  const heights = new Map<string, number>()
  const newestFirst: { readonly height: number; readonly bytes: Uint8Array }[] = []
  return {
    push(blockhash, height) {
      heights.set(blockhash, height)
      newestFirst.unshift({ height, bytes: decodeBase58(blockhash) })
      newestFirst.splice(REMEMBERED_MAX + OLDER_BLOCKS)
      // A Map keeps the order of insertion, so its first key is the oldest.
      if (heights.size > REMEMBERED_MAX) heights.delete(heights.keys().next().value as string)
    },
    heightOf: (blockhash) => heights.get(blockhash),
    upTo(height, count) {
      const first = newestFirst.findIndex((entry) => entry.height <= height)
      return first < 0 ? [] : newestFirst.slice(first, first + count).map(({ bytes }) => bytes)
    },
  }
}

/** Whether a hash of height `height` may still be used when the newest block has height `headHeight`. */
export function isRecent(height: number, headHeight: number): boolean {
  return height <= headHeight && headHeight - height <= BLOCKHASH_AGE_MAX
}
