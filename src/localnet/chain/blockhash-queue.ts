import { decodeBase58 } from '../../solana/crypto/base58.ts'

/** The newest blockhashes with their heights. A hash is valid for 150 blocks after its own; 300 are kept (Agave MAX_RECENT_BLOCKHASHES). */
export type BlockhashQueue = {
  push(blockhash: string, height: number): void
  /** The height of the block with this hash, while the hash is kept. */
  heightOf(blockhash: string): number | undefined
  /** Newest first, of blocks up to `height`. */
  upTo(height: number, count: number): Uint8Array[]
}

/** MAX_PROCESSING_AGE. */
export const BLOCKHASH_AGE_MAX = 150
const HASHES_MAX = 300
/** Kept beyond that for the sysvars of older blocks, which are computed on first read. */
const OLDER_BLOCKS = 256

export function createBlockhashQueue(): BlockhashQueue {
  const heights = new Map<string, number>()
  const newestFirst: { readonly height: number; readonly bytes: Uint8Array }[] = []
  return {
    push(blockhash, height) {
      heights.set(blockhash, height)
      newestFirst.unshift({ height, bytes: decodeBase58(blockhash) })
      newestFirst.splice(HASHES_MAX + OLDER_BLOCKS)
      // A Map iterates in insertion order, so its first key is the oldest.
      if (heights.size > HASHES_MAX) heights.delete(heights.keys().next().value as string)
    },
    heightOf: (blockhash) => heights.get(blockhash),
    upTo(height, count) {
      const first = newestFirst.findIndex((entry) => entry.height <= height)
      return first < 0 ? [] : newestFirst.slice(first, first + count).map(({ bytes }) => bytes)
    },
  }
}

/** Whether a hash of height `height` is still valid when the newest block has height `headHeight`. */
export function isRecent(height: number, headHeight: number): boolean {
  return height <= headHeight && headHeight - height <= BLOCKHASH_AGE_MAX
}
