import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { recordEntries, sha256, signatureRoot } from './poh.ts'

const hashOf = (...parts: Uint8Array[]) => new Uint8Array(createHash('sha256').update(Buffer.concat(parts)).digest())
const signature = (byte: number) => new Uint8Array(64).fill(byte)

test('the merkle root of signatures pairs an unpaired last node with itself', () => {
  const leaf = (byte: number) => hashOf(Uint8Array.of(0), signature(byte))
  const node = (left: Uint8Array, right: Uint8Array) => hashOf(Uint8Array.of(1), left, right)
  assert.deepEqual(signatureRoot([signature(1)]), leaf(1))
  const [first, last] = [node(leaf(1), leaf(2)), node(leaf(3), leaf(3))]
  assert.deepEqual(signatureRoot([1, 2, 3].map(signature)), node(first, last))
})

test('an entry mixes its transactions into the hash chain, a tick adds one hash', () => {
  const previousHash = new Uint8Array(32).fill(7)
  const entries = recordEntries({
    previousHash,
    batches: [[[signature(1), signature(2)]], [[signature(3)], [signature(4)]]],
    ticks: 2,
  })
  const first = hashOf(previousHash, signatureRoot([signature(1), signature(2)]))
  const second = hashOf(first, signatureRoot([signature(3), signature(4)]))
  assert.deepEqual(
    entries.map(({ hash }) => hash),
    [first, second, hashOf(second), hashOf(hashOf(second))],
  )
  assert.deepEqual(
    entries.map(({ firstTransaction, transactionCount }) => [firstTransaction, transactionCount]),
    [
      [0, 1],
      [1, 2],
      [3, 0],
      [3, 0],
    ],
  )
  assert.deepEqual(sha256(previousHash), hashOf(previousHash))
})
