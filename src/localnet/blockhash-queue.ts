/** The newest blockhashes with their heights. A hash is good for 150 blocks after its own; the queue remembers 300 (Agave MAX_RECENT_BLOCKHASHES). */
export type BlockhashQueue = {
  push(blockhash: string, height: number): void
  /** The height at which this hash entered the chain, while it is remembered. */
  heightOf(blockhash: string): number | undefined
  /** Newest first. */
  newest(count: number): string[]
}

/** MAX_PROCESSING_AGE. */
export const BLOCKHASH_AGE_MAX = 150
const REMEMBERED_MAX = 300

export function createBlockhashQueue(): BlockhashQueue {
  // A Map keeps the order of insertion, so its first key is the oldest.
  const heights = new Map<string, number>()
  return {
    push(blockhash, height) {
      heights.set(blockhash, height)
      if (heights.size > REMEMBERED_MAX) heights.delete(heights.keys().next().value as string)
    },
    heightOf: (blockhash) => heights.get(blockhash),
    newest: (count) => [...heights.keys()].slice(-count).reverse(),
  }
}

/** Whether a hash of height `height` may still be used when the newest block has height `headHeight`. */
export function isRecent(height: number, headHeight: number): boolean {
  return height <= headHeight && headHeight - height <= BLOCKHASH_AGE_MAX
}
