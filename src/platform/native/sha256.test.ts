import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { SHA256_INPUT_BYTES } from '../../core/sha256.ts'
import { loadNativeSha256 } from './sha256.ts'

test('the function of the library computes the same digests as node:crypto, at every length', async () => {
  const sha256 = await loadNativeSha256()
  assert.ok(sha256)
  for (let length = 0; length <= SHA256_INPUT_BYTES; length += 13) {
    sha256.input.fill(length & 255)
    sha256.run(length)
    const expected: string = createHash('sha256').update(sha256.input.subarray(0, length)).digest('hex')
    assert.equal(Buffer.from(sha256.output).toString('hex'), expected)
  }
})
