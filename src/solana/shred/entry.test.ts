import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, mutate, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createSigningKey } from '../crypto/ed25519.ts'
import { buildLegacyMessage, memoInstruction, signMessage } from '../transaction/build.ts'
import { encodeOpaqueMarker } from './block-marker.ts'
import { decodeBatch, type EntryToEncode, encodeEntries } from './entry.ts'

const payer = createSigningKey(new Uint8Array(32).fill(1))

function transactionOf(text: string): Uint8Array {
  return signMessage(
    buildLegacyMessage({
      feePayer: payer.publicKey,
      recentBlockhash: new Uint8Array(32).fill(2),
      instructions: [memoInstruction(new Uint8Array(32).fill(3), text)],
    }),
    [payer],
  )
}

const entries: EntryToEncode[] = [
  { numHashes: 1n, hash: new Uint8Array(32).fill(4), transactions: [transactionOf('a'), transactionOf('bc')] },
  { numHashes: 2n ** 64n - 1n, hash: new Uint8Array(32).fill(5), transactions: [] },
  { numHashes: 0n, hash: new Uint8Array(32).fill(6), transactions: [transactionOf('d'.repeat(900))] },
]

/** Encodes the decoded entries again; the signatures and the message follow the signature count. */
function encodeAgain(bytes: Uint8Array): Uint8Array | string {
  const result = decodeBatch(bytes)
  if (!result.ok) return result.reason
  assert.equal(result.kind, 'entries')
  return encodeEntries(
    (result.kind === 'entries' ? result.entries : []).map((entry) => ({
      ...entry,
      transactions: entry.transactions.map((transaction) => {
        const start = (transaction.version === 1 ? transaction.message : (transaction.signatures[0] as Uint8Array))
          .byteOffset
        const from = start - bytes.byteOffset - (transaction.version === 1 ? 0 : 1)
        return bytes.subarray(from, from + transaction.wireLength)
      }),
    })),
  )
}

test('decodes entries as they were encoded', () => {
  const bytes = encodeEntries(entries)
  const result = decodeBatch(bytes)
  assert.ok(result.ok && result.kind === 'entries')
  assert.deepEqual(
    result.entries.map(({ numHashes, hash }) => ({ numHashes, hash })),
    entries.map(({ numHashes, hash }) => ({ numHashes, hash })),
  )
  assert.deepEqual(
    result.entries.map((entry) => entry.transactions.length),
    [2, 0, 1],
  )
  assert.deepEqual(encodeAgain(bytes), bytes)
})

test('the layout is count, then hashes, hash, count, transactions', () => {
  const bytes = Buffer.from(encodeEntries(entries.slice(0, 2)))
  const [first, second] = [transactionOf('a'), transactionOf('bc')]
  const u64 = (value: bigint) => {
    const eight = Buffer.alloc(8)
    eight.writeBigUInt64LE(value)
    return eight
  }
  const hash = (byte: number) => Buffer.alloc(32, byte)
  const expected = [u64(2n), u64(1n), hash(4), u64(2n), first, second, u64(2n ** 64n - 1n), hash(5), u64(0n)]
  assert.deepEqual(bytes, Buffer.concat(expected))
})

test('refuses every truncation, and ignores what follows the last entry', () => {
  const bytes = encodeEntries(entries)
  for (let length = 0; length < bytes.length; length++) {
    assert.equal(encodeAgain(bytes.subarray(0, length)), 'truncated', `cut at ${length}`)
  }
  for (const extra of [[0], [1, 2, 3], new Uint8Array(100)]) {
    const result = decodeBatch(Uint8Array.of(...bytes, ...extra))
    assert.ok(result.ok && result.kind === 'entries')
    assert.deepEqual([result.entries.length, result.length], [entries.length, bytes.length])
  }
})

test('refuses counts larger than the batch without iterating over them', () => {
  const bytes = encodeEntries(entries)
  assert.equal(encodeAgain(bytes.with(7, 0x80)), 'truncated')
  assert.equal(encodeAgain(bytes.with(8 + 47, 0x80)), 'truncated')
})

test('mutated batches are accepted only when they encode back to the same bytes, up to the end of the last entry', (t) => {
  const random = createRandom(seedOf(t))
  const bytes = encodeEntries(entries)
  let accepted = 0
  const runs = repeatsOf({ short: 5000, full: 300_000 })
  for (let run = 0; run < runs; run++) {
    const mutant = mutate(bytes, random)
    const result = decodeBatch(mutant)
    if (!result.ok || result.kind !== 'entries') continue
    accepted++
    assert.deepEqual(encodeAgain(mutant), mutant.subarray(0, result.length))
  }
  assert.ok(accepted > 100)
  for (let run = 0; run < 1000; run++) decodeBatch(randomBytesOf(random, random(200)))
})

test('a count of zero is a block marker, also one of an unknown version or kind', () => {
  const body = Uint8Array.of(7, 8, 9)
  const names = ['block-footer', 'block-header', 'update-parent', 'genesis-certificate', 'unknown']
  for (const [kind, variant] of names.entries()) {
    const result = decodeBatch(encodeOpaqueMarker({ version: 1, kind, body }))
    assert.ok(result.ok && result.kind === 'marker')
    assert.deepEqual([result.marker.variant, result.marker.body], [variant, body])
  }
  const later = decodeBatch(encodeOpaqueMarker({ version: 2, kind: undefined, body }))
  assert.ok(later.ok && later.kind === 'marker')
  assert.deepEqual([later.marker.variant, later.marker.body], ['unknown', body])
  const marker = encodeOpaqueMarker({ version: 1, kind: 0, body })
  assert.deepEqual(decodeBatch(Uint8Array.of(...marker, 0)), decodeBatch(marker), 'as in Agave')
})

test('a count of zero that nothing follows is a batch without entries', () => {
  assert.deepEqual(decodeBatch(new Uint8Array(8)), { ok: true, kind: 'entries', entries: [], length: 8 })
  for (const length of [7, 9]) assert.deepEqual(decodeBatch(new Uint8Array(length)), { ok: false, reason: 'truncated' })
})
