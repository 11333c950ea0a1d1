import type { Transform } from 'node:stream'
import { cityHash128 } from '../../platform/compression/city-hash.ts'
import { compressLz4Block, createBlockStream, createLz4Table } from '../../platform/compression/lz4.ts'

/** Method byte of LZ4, the only one that every client reads. */
const LZ4 = 0x82
/** Method, compressed size with this head, and size of the content. */
const HEAD_BYTES = 9

/**
 * ClickHouse's own compression of responses (`compress=1`): blocks of a checksum of 16 bytes, a head of 9 bytes and the compressed content
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
