import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cityHash128 } from '../../platform/compression/city-hash.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import { expandNativeBlocks, toNativeBlock } from './native-blocks.ts'

const ZSTD = 0x90
const MALFORMED = { ok: false, reason: 'malformed' }

/** A block with a right checksum, and in its head any method and any sizes. */
function blockOf(method: number, packed: Uint8Array, bytes: number, packedBytes = 9 + packed.length): Buffer {
  const head = Buffer.alloc(9)
  head[0] = method
  head.writeUInt32LE(packedBytes, 1)
  head.writeUInt32LE(bytes, 5)
  const block = Buffer.concat([head, packed])
  return Buffer.concat([cityHash128(block.subarray(0, packedBytes)), block])
}

/** A frame of zstd (RFC 8878) whose content is `blocks` times 128 KiB of one byte, or one empty block. */
function zstdFrame({ windowLog, blocks = 0 }: { windowLog: number; blocks?: number }): Buffer {
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3])
  const repeated = Buffer.alloc(4, 'a')
  repeated.writeUIntLE(((128 * 1024) << 3) | 2, 0, 3)
  return Buffer.concat([head, ...Array.from({ length: blocks }, () => repeated), Buffer.from([1, 0, 0])])
}

test('other connections are served between the checksum and the expansion of a block, and between blocks', async () => {
  const turns: string[] = []
  let now = 0
  const slices = createTimeSlices(() => (now += 10), { nextTurn: async () => void turns.push('turn') })
  const body = Buffer.concat([toNativeBlock(Buffer.from('select ')), toNativeBlock(Buffer.from('1'))])
  assert.deepEqual(await expandNativeBlocks(body, 100, slices), { ok: true, content: Buffer.from('select 1') })
  assert.equal(turns.length, 4)
  now = 0
  const fast = createTimeSlices(() => now, { nextTurn: () => assert.fail('the slice is not spent') })
  assert.equal((await expandNativeBlocks(body, 100, fast)).ok, true)
})

test('a compressed size that does not include the head is malformed', async () => {
  // The last byte of this head, 0, is at the same time the first byte of the next block.
  const short = blockOf(0x02, Buffer.alloc(0), 0, 8).subarray(0, 16 + 8)
  const next = Array.from({ length: 5000 }, (_, n) => blockOf(0x02, Buffer.from(`${n}`), `${n}`.length))
  const following = next.find((block) => block[0] === 0)
  assert.ok(following !== undefined)
  assert.equal((await expandNativeBlocks(following, 100)).ok, true)
  assert.deepEqual(await expandNativeBlocks(Buffer.concat([short, following]), 100), MALFORMED)
  for (const packedBytes of [0, 8])
    assert.deepEqual(await expandNativeBlocks(blockOf(0x02, Buffer.alloc(0), 0, packedBytes), 100), MALFORMED)
  assert.equal((await expandNativeBlocks(blockOf(0x02, Buffer.alloc(0), 0, 9), 100)).ok, true)
})

test('a frame of zstd has a window of at most 8 MiB', async () => {
  for (const windowLog of [24, 27])
    assert.deepEqual(await expandNativeBlocks(blockOf(ZSTD, zstdFrame({ windowLog }), 0), 100), MALFORMED)
  assert.equal((await expandNativeBlocks(blockOf(ZSTD, zstdFrame({ windowLog: 23 }), 0), 100)).ok, true)
})

test('a frame of zstd is not expanded beyond the size in the head of its block', async () => {
  const packed = zstdFrame({ windowLog: 17, blocks: 2048 })
  const before = process.resourceUsage().maxRSS
  assert.deepEqual(await expandNativeBlocks(blockOf(ZSTD, packed, 1000), 1000), MALFORMED)
  const grownKib = process.resourceUsage().maxRSS - before
  assert.ok(grownKib < 128 * 1024, `${grownKib} KiB for a content of 256 MiB`)
})
