/** Reads pieces of given lengths from a stream of chunks, holding at most one piece and one chunk. */
export type ByteReader = {
  /** The next bytes, or undefined when the stream ends before them. A piece is valid until the next call. */
  take(count: number): Promise<Uint8Array | undefined>
  /** As `take`, without consuming the bytes. */
  peek(count: number): Promise<Uint8Array | undefined>
  /** Bytes consumed so far. */
  position(): number
  /** Bytes read from the stream and not yet consumed. */
  remaining(): number
}

export function createByteReader(chunks: AsyncIterable<Uint8Array>): ByteReader {
  const source = chunks[Symbol.asyncIterator]()
  let held: Uint8Array = new Uint8Array()
  let at = 0
  let taken = 0

  /** Joins the chunks of a piece once, because a piece may be many times as long as a chunk. */
  async function fill(count: number): Promise<boolean> {
    const parts = [held.subarray(at)]
    let have = held.length - at
    let isOver = false
    while (have < count && !isOver) {
      const next = await source.next()
      isOver = next.done === true
      if (next.done === true) break
      parts.push(next.value)
      have += next.value.length
    }
    if (parts.length > 1) {
      held = Buffer.concat(parts)
      at = 0
    }
    return have >= count
  }

  return {
    async take(count) {
      if (held.length - at < count && !(await fill(count))) return undefined
      const piece = held.subarray(at, at + count)
      at += count
      taken += count
      return piece
    },
    async peek(count) {
      return (await fill(count)) ? held.subarray(at, at + count) : undefined
    },
    position: () => taken,
    remaining: () => held.length - at,
  }
}
