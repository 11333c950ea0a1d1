import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { cityHash128 } from '../../platform/compression/city-hash.ts'
import { expandLz4Block } from '../../platform/compression/expand-lz4-block.ts'
import { compressLz4Block, createBlockStream, createLz4Table } from '../../platform/compression/lz4.ts'
import { ZSTD_PARAMS } from '../../platform/http/gzip.ts'
import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'

/** Method byte of LZ4, the only one that every client reads. */
const LZ4 = 0x82
/** Two more that clients write. */
const ZSTD = 0x90
const UNCOMPRESSED = 0x02
const CHECKSUM_BYTES = 16
/** Method, compressed size with this head, and size of the content. */
const HEAD_BYTES = 9

/**
 * ClickHouse's own compression of responses (`compress=1`) and requests (`decompress=1`): blocks of a checksum of 16 bytes, a head of 9 bytes and the compressed content
 * (clickhouse.com/docs, Native protocol, compression).
 */
export function createNativeBlockStream(): Transform {
  const table = createLz4Table()
  return createBlockStream({ head: NONE, tail: NONE, write: (part) => nativeBlock(part, table) })
}

const NONE = Buffer.alloc(0)

/** One block of a short content, such as the text of an error. */
export function toNativeBlock(content: Uint8Array): Buffer {
  return nativeBlock(content, createLz4Table())
}

function nativeBlock(content: Uint8Array, table: Int32Array): Buffer {
  const packed = compressLz4Block(content, table)
  const block = Buffer.allocUnsafe(HEAD_BYTES + packed.length)
  block[0] = LZ4
  block.writeUInt32LE(block.length, 1)
  block.writeUInt32LE(content.length, 5)
  block.set(packed, HEAD_BYTES)
  return Buffer.concat([cityHash128(block), block])
}

export type ExpandedBlocks =
  | { readonly ok: true; readonly content: Buffer }
  | { readonly ok: false; readonly reason: 'too-large' | 'malformed' }

/** On the thread pool. */
const unzstd = promisify(zstdDecompress)

/** The checksum of a block costs as much as some kilobytes; clients write blocks of 64 KiB and more. */
const BLOCKS_MAX = 64
const TOO_LARGE: ExpandedBlocks = { ok: false, reason: 'too-large' }
const MALFORMED: ExpandedBlocks = { ok: false, reason: 'malformed' }

/**
 * The content of a request body of such blocks (`decompress=1`), if it has at most `bytesMax` bytes. A checksum and an expansion of a large block
 * take milliseconds each, so the event loop may serve other connections after each of them.
 */
export async function expandNativeBlocks(
  body: Buffer,
  bytesMax: number,
  slices: TimeSlices = createTimeSlices(),
): Promise<ExpandedBlocks> {
  const parts: Buffer[] = []
  let bytes = 0
  for (let at = 0; at < body.length; ) {
    const from = at + CHECKSUM_BYTES
    if (from + HEAD_BYTES > body.length || parts.length === BLOCKS_MAX) return MALFORMED
    const end = from + body.readUInt32LE(from + 1)
    const size = body.readUInt32LE(from + 5)
    if (end < from + HEAD_BYTES || end > body.length) return MALFORMED
    bytes += size
    if (bytes > bytesMax) return TOO_LARGE
    if (!cityHash128(body.subarray(from, end)).equals(body.subarray(at, from))) return MALFORMED
    if (slices.isSpent()) await slices.yield()
    const content = await expandBlock(body[from] as number, body.subarray(from + HEAD_BYTES, end), size)
    if (content?.length !== size) return MALFORMED
    parts.push(content)
    at = end
    if (slices.isSpent()) await slices.yield()
  }
  return { ok: true, content: Buffer.concat(parts) }
}

async function expandBlock(method: number, packed: Buffer, bytes: number): Promise<Buffer | undefined> {
  if (method === LZ4) return expandLz4Block(packed, bytes)
  if (method === UNCOMPRESSED) return packed
  if (method !== ZSTD) return undefined
  try {
    return await unzstd(packed, { maxOutputLength: Math.max(1, bytes), params: ZSTD_PARAMS })
  } catch {
    return undefined
  }
}
