import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { expandLz4Block } from './expand-lz4-block.ts'
import { compressLz4Block, createLz4Table } from './lz4.ts'

const content = fc.oneof(
  fc.uint8Array({ maxLength: 2000 }),
  fc
    .array(fc.constantFrom('a', 'abc', 'abcabd', '0123456789'.repeat(40)), { maxLength: 60 })
    .map((parts) => Buffer.from(parts.join(''))),
)

test('a block expands to what was compressed, and not to another size', (t) => {
  const table = createLz4Table()
  checkProperty(
    t,
    fc.property(content, (bytes) => {
      const block = compressLz4Block(bytes, table)
      assert.deepEqual(expandLz4Block(block, bytes.length), Buffer.from(bytes))
      assert.equal(expandLz4Block(block, bytes.length + 1), undefined)
      if (bytes.length > 0) assert.equal(expandLz4Block(block, bytes.length - 1), undefined)
    }),
    200,
    5_000,
  )
  // One literal, then a match that repeats it: 1 + 4 + 15 + 255 + 1 bytes, and one more literal.
  const run = Uint8Array.of(0x1f, 65, 1, 0, 255, 1, 0x10, 66)
  assert.deepEqual(expandLz4Block(run, 277), Buffer.from(`${'A'.repeat(276)}B`))
})

test('any bytes expand to the size that is asked for, or are refused', (t) => {
  checkProperty(
    t,
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat({ max: 400 }), (block, bytes) => {
      const expanded = expandLz4Block(block, bytes)
      assert.ok(expanded === undefined || expanded.length === bytes)
    }),
    500,
    50_000,
  )
})
