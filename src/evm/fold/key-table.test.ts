import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { ACCOUNT_KEY_WORDS, isModified, isTransient, KeyHasher, STORAGE_KEY_WORDS } from './access-key.ts'
import { AccessRun } from './access-run.ts'
import { compareKeys, sortByKey } from './key-order.ts'
import { KeyTable, NOT_FOUND } from './key-table.ts'

type Two<T> = [T, T]

const words = (length: number) =>
  fc.uint8Array({ minLength: length * 4, maxLength: length * 4 }).map((bytes) => new Uint32Array(bytes.buffer))
const hexOf = (key: Uint32Array): string => Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('hex')

/** Few distinct keys and fewer distinct hashes, so that probe sequences form, break and wrap. */
const step = fc.record({
  key: fc.nat({ max: 30 }),
  hash: fc.constantFrom(0, 1, 2, 15, 16, 31, 2 ** 24, 2 ** 24 + 1, 2 ** 30, -1, -2),
  what: fc.nat({ max: 9 }),
})

/** Families of 4,096 keys that differ where a product modulo 2^32 loses bits: in the high bits, or in the same bit of many words. */
function* chosenKeys(): Generator<[string, Uint32Array[]]> {
  const family = (word: (n: number, at: number) => number) =>
    Array.from({ length: 4096 }, (_, n) => Uint32Array.from({ length: STORAGE_KEY_WORDS }, (_, at) => word(n, at)))
  const digit = (n: number, at: number, bits: number) => (n >>> (bits * at)) & (2 ** bits - 1)
  // The inverse of x ^ (x >>> 15), so that a hash that begins with this step is no better.
  const unshift = (x: number) => x ^ (x >>> 15) ^ (x >>> 30)
  yield ['high bits of the slot', family((n, at) => (at < 5 ? 7 : digit(n, at - 5, 2) << 30))]
  yield ['shifted high bits of the slot', family((n, at) => (at < 5 ? 7 : unshift((digit(n, at - 5, 2) << 30) >>> 0)))]
  yield ['all bits of words', family((n, at) => -digit(n, at, 1))]
  for (const bit of [0, 7, 8, 15, 16, 24, 30, 31]) yield [`bit ${bit}`, family((n, at) => digit(n, at, 1) << bit)]
  for (let bit = 0; bit <= 20; bit += 4)
    yield [`one word from bit ${bit}`, family((n, at) => (at === 9 ? n << bit : 0))]
}

describe('key table', () => {
  test('behaves like a Map through collisions, growth, trimming and clearing', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const table = new KeyTable({ words: 2, entriesMax: 24, entries: 2 })
        const model = new Map<number, { entry: number; hash: number }>()
        const hashes = new Map<number, number>()
        for (const { key, hash: chosen, what } of steps) {
          const hash = hashes.get(key) ?? chosen
          hashes.set(key, hash)
          const bytes = Uint32Array.of(key, 7)
          const known = model.get(key)
          assert.equal(table.find(bytes, 0, hash), known?.entry ?? NOT_FOUND)
          if (what === 0) {
            table.clear()
            model.clear()
          } else if (what === 1) {
            // Every other key stays, in order.
            const kept = [...model]
              .filter(([, { entry }]) => entry % 2 === key % 2)
              .toSorted(([, a], [, b]) => a.entry - b.entry)
            table.keepOnly(Int32Array.from(kept, ([, { entry }]) => entry))
            model.clear()
            for (const [entry, [id, its]] of kept.entries()) model.set(id, { entry, hash: its.hash })
          } else if (known === undefined) {
            const entry = table.add(bytes, 0, hash)
            assert.equal(entry, model.size < 24 ? model.size : NOT_FOUND)
            if (entry !== NOT_FOUND) model.set(key, { entry, hash })
          }
          assert.equal(table.size, model.size)
          for (const [other, { entry, hash: its }] of model)
            assert.equal(table.find(Uint32Array.of(9, other, 7), 1, its), entry)
        }
      }),
      seedFor('key-table', 300),
    )
  })

  test('distinguishes keys that differ in one bit', () => {
    const table = new KeyTable({ words: STORAGE_KEY_WORDS, entriesMax: 1000 })
    const hasher = new KeyHasher(STORAGE_KEY_WORDS, 3)
    const hashes = new Set<number>()
    for (let bit = 0; bit < STORAGE_KEY_WORDS * 32; bit++) {
      const key = new Uint32Array(STORAGE_KEY_WORDS)
      key[bit >> 5] = 1 << (bit & 31)
      assert.equal(table.find(key, 0, hasher.hash(key, 0)), NOT_FOUND)
      assert.equal(table.add(key, 0, hasher.hash(key, 0)), bit)
      hashes.add(hasher.hash(key, 0))
    }
    assert.equal(hashes.size, STORAGE_KEY_WORDS * 32)
  })

  test('spreads small numbers in several words of a key over the table', () => {
    const hasher = new KeyHasher(STORAGE_KEY_WORDS, 1)
    const positions = new Set<number>()
    const key = new Uint8Array(52)
    for (let owner = 0; owner < 64; owner++) {
      for (let slot = 0; slot < 64; slot++) {
        key[19] = owner
        key[51] = slot
        positions.add(hasher.hash(new Uint32Array(key.buffer), 0) & 8191)
      }
    }
    // 4,096 keys in 8,192 buckets fill about 3,223 of them at random.
    assert(positions.size > 2900, `only ${positions.size} places`)
  })

  test('spreads chosen keys, whatever the seed', () => {
    const seeds = Array.from({ length: 8 }, (_, index) => Math.imul(index + 1, 0x2545f491) >>> 0)
    for (const [name, keys] of chosenKeys()) {
      for (const seed of seeds) {
        const hasher = new KeyHasher(STORAGE_KEY_WORDS, seed)
        const sharing = new Map<number, number>()
        for (const key of keys) {
          const hash = hasher.hash(key, 0)
          sharing.set(hash, (sharing.get(hash) ?? 0) + 1)
        }
        const label = `${name}, seed ${seed}`
        assert(sharing.size > keys.length * 0.8, `${label}: ${keys.length} keys have ${sharing.size} hashes`)
        const most = Math.max(...sharing.values())
        assert(most <= 8, `${label}: ${most} keys share a hash`)
      }
    }
  })

  test('entering a run equals adding its keys one by one', () => {
    const id = fc.nat({ max: 12 })
    fc.assert(
      fc.property(fc.array(fc.array(id, { maxLength: 5 }), { maxLength: 12 }), (runs) => {
        const [whole, single] = [0, 0].map(
          () => new KeyTable({ words: 1, entriesMax: 16, entries: 2 }),
        ) as Two<KeyTable>
        for (const ids of runs) {
          if (!whole.hasRoomFor(ids.length)) return
          // Few distinct hashes, so that keys collide.
          const run = { count: ids.length, keys: Uint32Array.from(ids), hashes: Int32Array.from(ids, (its) => its % 3) }
          const entries = new Int32Array(ids.length)
          whole.enter({ ...run, entries })
          const expected = ids.map((its, at) => {
            const known = single.find(run.keys, at, its % 3)
            return known === NOT_FOUND ? single.add(run.keys, at, its % 3) : known
          })
          assert.deepEqual([...entries], expected)
          assert.equal(whole.size, single.size)
        }
      }),
      seedFor('key runs', 300),
    )
    const full = new KeyTable({ words: 1, entriesMax: 1 })
    const two = { count: 2, keys: Uint32Array.of(1, 2), hashes: Int32Array.of(1, 2), entries: new Int32Array(2) }
    assert.throws(() => full.enter(two), /has room for a run/)
  })

  test('keys read from payloads have the same hashes as in a table', () => {
    const position = fc.nat({ max: 25 }).map((word) => word * 4)
    fc.assert(
      fc.property(words(40), fc.array(position, { minLength: 1, maxLength: 4 }), (payload, positions) => {
        const bytes = new Uint8Array(payload.buffer)
        const slots = new AccessRun(STORAGE_KEY_WORDS)
        const accounts = new AccessRun(ACCOUNT_KEY_WORDS)
        for (const [at, payloadAt] of positions.entries()) for (const run of [slots, accounts]) run.add(payloadAt, at)
        const hasher = new KeyHasher(STORAGE_KEY_WORDS, 5)
        const addressHasher = new KeyHasher(ACCOUNT_KEY_WORDS, 5)
        hasher.hashSlots(payload, slots)
        hasher.hashAccounts(payload, accounts)
        const keyBytes = (run: AccessRun, at: number, length: number) => [
          ...new Uint8Array(run.keys.buffer, at * length, length),
        ]
        for (const [at, from] of positions.entries()) {
          const slot = [...bytes.subarray(from, from + 20), ...bytes.subarray(from + 27, from + 59)]
          assert.deepEqual(keyBytes(slots, at, 52), slot)
          assert.equal(slots.hashes[at], hasher.hash(slots.keys, at * STORAGE_KEY_WORDS))
          assert.equal(slots.contractHashes[at], addressHasher.hash(slots.keys, at * STORAGE_KEY_WORDS))
          assert.equal(isModified(slots.flags[at] as number), bytes[from + 25] !== 0)
          assert.equal(isTransient(slots.flags[at] as number), bytes[from + 26] !== 0)
          assert.deepEqual(keyBytes(accounts, at, 20), [...bytes.subarray(from + 4, from + 24)])
          assert.equal(accounts.hashes[at], addressHasher.hash(accounts.keys, at * ACCOUNT_KEY_WORDS))
        }
      }),
      seedFor('taken keys', 200),
    )
  })

  test('the seed changes the hash', () => {
    const key = Uint32Array.of(1, 2, 3, 4, 5)
    assert.notEqual(new KeyHasher(5, 1).hash(key, 0), new KeyHasher(5, 2).hash(key, 0))
  })
})

describe('key order', () => {
  test('takes n log n steps for keys with equal first words', () => {
    const count = 2000
    // The second word takes each value twice, and the last one decides.
    const key = (n: number) => [0x01020304, Math.imul(n >>> 1, 0x9e3779b1) >>> 0, 1 - (n & 1)]
    const keys = Uint32Array.from(Array.from({ length: count }, (_, n) => key(n)).flat())
    let reads = 0
    const counted = new Proxy(keys, {
      get: (target, index) => {
        reads += 1
        return Reflect.get(target, index)
      },
    })
    const sorted = sortByKey(
      { keys: counted, words: 3 },
      Uint32Array.from({ length: count }, (_, n) => n),
    )
    const hex = [...sorted].map((entry) => hexOf(keys.subarray(entry * 3, entry * 3 + 3)))
    assert.deepEqual(hex, hex.toSorted())
    // Each of about 11 comparisons per key reads at most 6 words.
    assert(reads < count * 100, `${reads} reads`)
  })

  test('equals the order of the hex strings', () => {
    const near = fc.tuple(words(3), fc.nat({ max: 2 })).map(([key, alike]) => key.fill(0x01020304, 0, alike))
    fc.assert(
      fc.property(fc.array(near, { maxLength: 40 }), (keys) => {
        const table = { keys: Uint32Array.from(keys.flatMap((key) => [...key])), words: 3 }
        const sorted = [...sortByKey(table, Uint32Array.from(keys.keys()).reverse())].map((entry) =>
          hexOf(keys[entry] as Uint32Array),
        )
        assert.deepEqual(sorted, keys.map(hexOf).toSorted())
        for (let a = 0; a + 1 < keys.length; a++) {
          const [x, y] = [hexOf(keys[a] as Uint32Array), hexOf(keys[a + 1] as Uint32Array)]
          assert.equal(Math.sign(compareKeys(table, a, a + 1)), x < y ? -1 : x > y ? 1 : 0)
        }
      }),
      seedFor('key-order', 200),
    )
  })
})
