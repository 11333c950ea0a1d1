/** Takes pieces of wanted lengths out of a stream of chunks, holding no more than one piece and one chunk. */
export type ByteReader = {
  /** The next bytes, or undefined when the stream has not so many left. A piece is valid until the next call. */
  take(count: number): Promise<Uint8Array | undefined>
  /** The same without taking them. */
  peek(count: number): Promise<Uint8Array | undefined>
  /** How many were taken. */
  position(): number
  /** How many are left in hand at the end of the stream. */
  left(): number
}

export function createByteReader(chunks: AsyncIterable<Uint8Array>): ByteReader {
  const source = chunks[Symbol.asyncIterator]()
  let held: Uint8Array = new Uint8Array()
  let at = 0
  let taken = 0

  /** Chunks are joined once, however many a piece needs: it may be many times as long as a chunk. */
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
    left: () => held.length - at,
  }
}
