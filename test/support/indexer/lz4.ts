import assert from 'node:assert/strict'

/** Expands one LZ4 block: a reader that shares no code with the writer. */
export function expandLz4Block(block: Uint8Array): Buffer {
  const out: number[] = []
  const length = (at: number, start: number): [total: number, next: number] => {
    let [total, next] = [start, at]
    if (start !== 15) return [total, next]
    for (;;) {
      const more = block[next++] as number
      total += more
      if (more !== 255) return [total, next]
    }
  }
  for (let at = 0; at < block.length; ) {
    const token = block[at++] as number
    let literals: number
    ;[literals, at] = length(at, token >> 4)
    for (const byte of block.subarray(at, at + literals)) out.push(byte)
    at += literals
    if (at >= block.length) break
    const offset = (block[at] as number) | ((block[at + 1] as number) << 8)
    assert.ok(offset > 0 && offset <= out.length)
    let match: number
    ;[match, at] = length(at + 2, token & 15)
    for (let count = match + 4; count > 0; count--) out.push(out[out.length - offset] as number)
  }
  return Buffer.from(out)
}

/** Expands the body of a response to `compress=1`: blocks of a checksum, a head and the content. */
export function expandNativeBlocks(body: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    assert.equal(body[at + 16], 0x82, 'a block of LZ4')
    const size = body.readUInt32LE(at + 17)
    const content = expandLz4Block(body.subarray(at + 25, at + 16 + size))
    assert.equal(content.length, body.readUInt32LE(at + 21))
    parts.push(content)
    at += 16 + size
  }
  return Buffer.concat(parts)
}
