import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import fc from 'fast-check'
import { expandLz4Block } from '../../../test/support/indexer/lz4.ts'
import { checkProperty } from '../../../test/support/process/property.ts'
import { compressLz4Block, createLz4Stream, createLz4Table } from './lz4.ts'

const content = fc.oneof(
  fc.uint8Array({ maxLength: 2000 }),
  fc
    .array(fc.constantFrom('abc', 'abcabd', 'xyz', '0123456789'.repeat(40)), { maxLength: 60 })
    .map((parts) => Buffer.from(parts.join(''))),
)

test('a block expands to what was compressed', (t) => {
  const table = createLz4Table()
  checkProperty(
    t,
    fc.property(content, (bytes) =>
      assert.deepEqual(expandLz4Block(compressLz4Block(bytes, table)), Buffer.from(bytes)),
    ),
    200,
    5_000,
  )
  const repeated = Buffer.from('a line of text\n'.repeat(4000))
  const packed = compressLz4Block(repeated, table)
  assert.deepEqual(expandLz4Block(packed), repeated)
  assert.ok(packed.length < repeated.length / 100)
  // A repetition that is further away than an offset can say.
  const noise = Buffer.from(Array.from({ length: 70_000 }, (_, at) => Math.imul(at * at, 2_654_435_761) >>> 24))
  const far = Buffer.concat([noise, noise])
  assert.deepEqual(expandLz4Block(compressLz4Block(far, table)), far)
})

test('a stream is one frame of blocks of at most 64 KiB, with an end mark', async () => {
  const noise = Buffer.from(Array.from({ length: 1000 }, (_, at) => Math.imul(at, 2654435761) >>> 24))
  const chunks = [Buffer.from('x'.repeat(200_000)), noise]
  const frame = await buffer(Readable.from(chunks).pipe(createLz4Stream()))
  assert.equal(frame.subarray(0, 7).toString('hex'), '04224d18604082')
  const parts: Buffer[] = []
  let at = 7
  for (;;) {
    const size = frame.readUInt32LE(at)
    at += 4
    if (size === 0) break
    const bytes = size & 0x7fff_ffff
    const block = frame.subarray(at, at + bytes)
    parts.push(size >>> 31 === 1 ? block : expandLz4Block(block))
    assert.ok((parts.at(-1)?.length ?? 0) <= 65_536)
    at += bytes
  }
  assert.equal(at, frame.length)
  assert.deepEqual(Buffer.concat(parts), Buffer.concat(chunks))
  const empty = await buffer(Readable.from([]).pipe(createLz4Stream()))
  assert.equal(empty.toString('hex'), '04224d1860408200000000')
})
