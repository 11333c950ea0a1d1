import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty, createRandom, mutate, randomBytesOf } from '../../../test/support/process/property.ts'
import { transactionShapes, wireOf } from '../../../test/support/solana/wire-transactions.ts'
import { decodeBatch, encodeEntries } from '../shred/entry.ts'
import { scanBatch } from '../shred/scan-batch.ts'
import { scanTransaction } from './scan.ts'
import { readTransaction } from './transaction.ts'
import { FORMAT_LIMITS } from './types.ts'

const seen = { valid: 0, invalid: 0, withLookups: 0 }

/** Both accept it, with the same content, or neither does. */
function compare(bytes: Uint8Array, offset: number): void {
  const read = readTransaction(bytes, offset, FORMAT_LIMITS)
  const scanned = scanTransaction(bytes, offset)
  if (typeof read === 'string') {
    assert.equal(scanned, undefined, read)
    seen.invalid += 1
    return
  }
  assert.ok(scanned !== undefined)
  assert.deepEqual(
    [scanned.at, scanned.wireLength, scanned.signature, scanned.addressTableLookups],
    [offset, read.wireLength, read.signatures[0], read.addressTableLookups],
  )
  seen.valid += 1
  seen.withLookups += Number(read.addressTableLookups.length > 0)
}

test('a scan accepts the transactions that are parsed, and no others: valid, mutated and truncated, anywhere in a batch', (t) => {
  checkProperty(
    t,
    fc.property(transactionShapes('legacy', 0, 1), fc.nat(40), (shape, before) => {
      const random = createRandom(shape.seed)
      const wire = wireOf(shape)
      const place = (bytes: Uint8Array, after: number) =>
        Uint8Array.of(...randomBytesOf(random, before), ...bytes, ...randomBytesOf(random, after))
      compare(place(wire, 0), before)
      compare(place(wire, 100), before)
      for (let i = 0; i < 12; i++) {
        compare(place(mutate(wire, random), random(2) * 80), before)
        const length = random(2) === 0 ? random(wire.length) : wire.length - 1 - random(Math.min(wire.length, 80))
        compare(place(wire.subarray(0, length), 0), before)
      }
    }),
    120,
    5000,
  )
  assert.ok(seen.valid > 300 && seen.invalid > 300 && seen.withLookups > 30, JSON.stringify(seen))
})

test('every byte of the lengths and the header is checked as by the parser', () => {
  for (const version of ['legacy', 0, 1] as const) {
    const wire = smallWire(version)
    for (let at = 0; at < wire.length; at++)
      for (const value of [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 0x7f, 0x80, 0x81, 0xff]) compare(wire.with(at, value), 0)
    for (let length = 0; length <= wire.length; length++) compare(wire.subarray(0, length), 0)
  }
})

test('a transaction that is longer than the format allows is refused, and one of that length is not', () => {
  for (const data of [65_000, 65_200, 65_400, 65_535]) {
    const [head, tail] = [smallWire('legacy', 0).slice(0, -1), [0xff, 0xff, 0x03]]
    const length = [(data & 127) | 128, ((data >> 7) & 127) | 128, data >> 14]
    compare(Uint8Array.of(...head, ...length, ...new Uint8Array(data)), 0)
    compare(Uint8Array.of(...head, ...tail, ...new Uint8Array(0xffff)), 0)
  }
})

test('the limits of instructions and accounts are those of the parser', () => {
  const instruction = { program: 1, accounts: 1, data: 0 }
  const valid = seen.valid
  for (const version of ['legacy', 0, 1] as const) {
    for (const count of [64, 65]) compare(smallWire(version, 0, { instructions: Array(count).fill(instruction) }), 0)
    for (const others of [252, 253, 254, 255]) compare(smallWire(version, 0, { others, lookups: [] }), 0)
    for (const readonly of [250, 251, 252, 253])
      compare(smallWire(version, 0, { lookups: [{ writable: 1, readonly }] }), 0)
  }
  assert.ok(seen.valid > valid)
})

test('a lookup that loads nothing is refused', () => {
  const withoutLookups = smallWire(0, 2, { lookups: [] }).slice(0, -1)
  const lookupOf = (...lists: number[]) => Uint8Array.of(...withoutLookups, 1, ...new Uint8Array(32), ...lists)
  compare(lookupOf(0, 0), 0)
  compare(lookupOf(1, 9, 0), 0)
  assert.equal(scanTransaction(lookupOf(0, 0), 0), undefined)
  assert.ok(scanTransaction(lookupOf(0, 1, 9), 0) !== undefined)
})

test('a batch is scanned as it is decoded, also mutated', (t) => {
  const counts = { valid: 0, invalid: 0 }
  checkProperty(
    t,
    fc.property(
      fc.array(fc.array(fc.nat(2), { maxLength: 3 }), { minLength: 1, maxLength: 4 }),
      fc.nat(),
      (of, seed) => {
        const random = createRandom(seed)
        const versions = ['legacy', 0, 1] as const
        const entries = of.map((each) => ({
          numHashes: BigInt(random(1000)),
          hash: randomBytesOf(random, 32),
          transactions: each.map((version) => smallWire(versions[version] as (typeof versions)[number])),
        }))
        const batch = encodeEntries(entries)
        const extra = Uint8Array.of(...batch, 1, 2, 3)
        for (const bytes of [batch, extra, ...Array.from({ length: 20 }, () => mutate(batch, random))]) {
          const decoded = decodeBatch(bytes)
          const scanned = scanBatch(bytes)
          if (!decoded.ok || decoded.kind === 'marker' || decoded.entries.length === 0) {
            assert.equal(scanned, undefined)
            counts.invalid += 1
            continue
          }
          counts.valid += 1
          const lengths = decoded.entries.flatMap(({ transactions }) =>
            transactions.map(({ wireLength }) => wireLength),
          )
          assert.deepEqual([scanned?.entries, scanned?.length], [decoded.entries.length, decoded.length])
          assert.deepEqual(
            scanned?.transactions.map(({ wireLength }) => wireLength),
            lengths,
          )
        }
      },
    ),
    150,
    5000,
  )
  assert.ok(counts.valid > 100 && counts.invalid > 100, JSON.stringify(counts))
})

/** Four keys, two of them signers, and one instruction with two accounts; v0 has a lookup. */
function smallWire(
  version: 'legacy' | 0 | 1,
  data = 2,
  changes: Partial<Parameters<typeof wireOf>[0]> = {},
): Uint8Array {
  return wireOf({
    ...{ version, signers: 2, others: 2, isVoteProgram: false, seed: 5 },
    instructions: [{ program: 1, accounts: 2, data }],
    lookups: [{ writable: 1, readonly: 2 }],
    config: { priorityFeeLamports: 5n, computeUnitLimit: 1, loadedAccountsDataSizeLimit: null, heapSize: 32_768 },
    ...changes,
  })
}
