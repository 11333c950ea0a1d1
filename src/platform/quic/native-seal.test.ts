import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { nodeSeal } from './keys.ts'
import { loadNativeSeal } from './native-seal.ts'

test('seals every packet as node:crypto does, whatever was sealed before', async (t) => {
  const seal = await loadNativeSeal()
  assert.ok(seal)
  const bytes = (lengths: { minLength: number; maxLength: number }) => fc.uint8Array({ ...lengths, size: 'max' })
  const fixed = (length: number) => bytes({ minLength: length, maxLength: length })
  const packet = fc.record({
    key: fixed(16),
    nonce: fixed(12),
    header: fc.oneof(bytes({ minLength: 1, maxLength: 40 }), bytes({ minLength: 1500, maxLength: 1600 })),
    payload: fc.oneof(bytes({ minLength: 0, maxLength: 1200 }), bytes({ minLength: 1500, maxLength: 1600 })),
  })
  const isSame = fc.property(packet, (given) => {
    const payload = Uint8Array.from(given.payload)
    assert.equal(Buffer.compare(seal(given), nodeSeal(given)), 0)
    assert.deepEqual(given.payload, payload, 'what is given is not changed')
  })
  checkProperty(t, isSame, 200, 5000)
})
