import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeCreatedAt } from './scratch.ts'
import { SlotUpdate } from './slot-update.ts'

test('a slot update keeps a copy of its bytes and no shared buffer', () => {
  const body = new SlotUpdate({ slot: 12, parentSlot: 11 }, 'processed', encodeCreatedAt(1_700_000_000_000)).body()
  assert.ok(body.length > 0)
  assert.equal(body.buffer.byteLength, body.length)
})
