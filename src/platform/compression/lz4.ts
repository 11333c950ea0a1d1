import { Transform, type TransformCallback } from 'node:stream'

/**
 * LZ4 by its block and frame formats (github.com/lz4/lz4, doc/lz4_Block_format.md and doc/lz4_Frame_format.md), which Node's zlib does not have. Only
 * compression (`expand-lz4-block.ts` is the other direction): a response is compressed in blocks that take well under a millisecond per 10 KiB.
 */

/** Size of the blocks of a frame; each is compressed on its own. */
const BLOCK_BYTES = 64 * 1024

const HASH_BITS = 14
const MATCH_BYTES_MIN = 4
/** A match ends at least so many bytes before the end of the block, and begins at least as many as the second number. */
const LAST_LITERALS = 5
const LAST_MATCH_START = 12
const OFFSET_MAX = 65_535

/** Most bytes that a block of this size is compressed to. */
function compressedBytesMax(bytes: number): number {
  return bytes + Math.floor(bytes / 255) + 16
}

/** Memory for the positions of earlier bytes, for any number of blocks. */
export function createLz4Table(): Int32Array {
  return new Int32Array(1 << HASH_BITS)
}

/** Compresses one block. */
export function compressLz4Block(source: Uint8Array, table: Int32Array): Buffer {
  const view = new DataView(source.buffer, source.byteOffset, source.byteLength)
  const out = Buffer.allocUnsafe(compressedBytesMax(source.length))
  const lastMatchStart = source.length - LAST_MATCH_START
  let written = 0
  let anchor = 0
  let at = 0
  table.fill(-1)

  while (at <= lastMatchStart) {
    const four = view.getInt32(at, true)
    const bucket = Math.imul(four, 0x9e3779b1) >>> (32 - HASH_BITS)
    const candidate = table[bucket] as number
    table[bucket] = at
    if (candidate === -1 || at - candidate > OFFSET_MAX || view.getInt32(candidate, true) !== four) {
      // Skips faster the longer nothing matches.
      at += 1 + ((at - anchor) >> 6)
      continue
    }
    let length = MATCH_BYTES_MIN
    const lengthMax = source.length - LAST_LITERALS - at
    while (length < lengthMax && source[candidate + length] === source[at + length]) length++
    written = writeSequence(out, written, source.subarray(anchor, at), { offset: at - candidate, length })
    at += length
    anchor = at
  }
  written = writeSequence(out, written, source.subarray(anchor), undefined)
  return out.subarray(0, written)
}

/** Writes literals and the match after them; the last sequence has no match. Returns the next offset. */
function writeSequence(
  out: Buffer,
  from: number,
  literals: Uint8Array,
  match: { readonly offset: number; readonly length: number } | undefined,
): number {
  const matchCode = match === undefined ? 0 : match.length - MATCH_BYTES_MIN
  let at = from
  out[at++] = (Math.min(literals.length, 15) << 4) | Math.min(matchCode, 15)
  at = writeLength(out, at, literals.length)
  out.set(literals, at)
  at += literals.length
  if (match === undefined) return at
  at = out.writeUInt16LE(match.offset, at)
  return writeLength(out, at, matchCode)
}

/** The part of a length from 15 on, in bytes of at most 255. */
function writeLength(out: Buffer, from: number, length: number): number {
  if (length < 15) return from
  let at = from
  let rest = length - 15
  for (; rest >= 255; rest -= 255) out[at++] = 255
  out[at++] = rest
  return at
}

/** Magic number, version 1 with independent blocks of at most 64 KiB and no checksums, and the checksum of these two bytes. */
const FRAME_HEAD = Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82])
const FRAME_END = Buffer.alloc(4)
const UNCOMPRESSED = 0x8000_0000

/** Compresses a stream into one LZ4 frame. */
export function createLz4Stream(): Transform {
  const table = createLz4Table()
  return createBlockStream({
    head: FRAME_HEAD,
    tail: FRAME_END,
    write(part) {
      const packed = compressLz4Block(part, table)
      const isSmaller = packed.length < part.length
      const size = Buffer.allocUnsafe(4)
      size.writeUInt32LE(isSmaller ? packed.length : (part.length | UNCOMPRESSED) >>> 0)
      return Buffer.concat([size, isSmaller ? packed : part])
    },
  })
}

type BlockFormat = { readonly head: Uint8Array; readonly tail: Uint8Array; write(part: Uint8Array): Uint8Array }

/** Writes a stream block by block, each in a turn of the event loop of its own: a block takes milliseconds. */
export function createBlockStream({ head, tail, write }: BlockFormat): Transform {
  let hasHead = false
  const begin = (stream: Transform): void => {
    if (!hasHead && head.length > 0) stream.push(head)
    hasHead = true
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      begin(this)
      const next = (at: number): void => {
        if (at >= chunk.length) return done()
        this.push(write(chunk.subarray(at, at + BLOCK_BYTES)))
        setImmediate(next, at + BLOCK_BYTES)
      }
      next(0)
    },
    flush(done) {
      begin(this)
      done(null, tail.length === 0 ? undefined : tail)
    },
  })
}
