import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../core/test-seed.ts'
import { KeyHasher, STORAGE_KEY_WORDS } from './access-key.ts'
import { compareKeys, sortByKey } from './key-order.ts'
import { KeyTable, NOT_FOUND } from './key-table.ts'

const words = (length: number) =>
  fc.uint8Array({ minLength: length * 4, maxLength: length * 4 }).map((bytes) => new Uint32Array(bytes.buffer))
const hexOf = (key: Uint32Array): string => Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('hex')

/** Few distinct keys and fewer distinct hashes, so that runs of places form, break and wrap round. */
const step = fc.record({
  key: fc.nat({ max: 30 }),
  hash: fc.constantFrom(0, 1, 2, 15, 16, 31, -1, -2),
  what: fc.nat({ max: 9 }),
})

describe('key table', () => {
  test('finds what a map would find, through collisions, replacements, growth and clearing', () => {
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
          assert.equal(table.find(bytes, hash), known?.entry ?? NOT_FOUND)
          if (what === 0) {
            table.clear()
            model.clear()
          } else if (known === undefined && what <= 2 && model.size > 0) {
            const [victim, { entry }] = [...model][key % model.size] as [number, { entry: number; hash: number }]
            table.replace(entry, bytes, hash)
            model.delete(victim)
            model.set(key, { entry, hash })
          } else if (known === undefined) {
            const entry = table.add(bytes, hash)
            assert.equal(entry, model.size < 24 ? model.size : NOT_FOUND)
            if (entry !== NOT_FOUND) model.set(key, { entry, hash })
          }
          assert.equal(table.size, model.size)
          for (const [other, { entry, hash: its }] of model)
            assert.equal(table.find(Uint32Array.of(other, 7), its), entry)
        }
      }),
      seedFor('key-table', 300),
    )
  })

  test('keys that differ in one bit only are apart', () => {
    const table = new KeyTable({ words: STORAGE_KEY_WORDS, entriesMax: 1000 })
    const hasher = new KeyHasher(STORAGE_KEY_WORDS, 3)
    const hashes = new Set<number>()
    for (let bit = 0; bit < STORAGE_KEY_WORDS * 32; bit++) {
      const key = new Uint32Array(STORAGE_KEY_WORDS)
      key[bit >> 5] = 1 << (bit & 31)
      assert.equal(table.find(key, hasher.hash(key)), NOT_FOUND)
      assert.equal(table.add(key, hasher.hash(key)), bit)
      hashes.add(hasher.hash(key))
    }
    assert.equal(hashes.size, STORAGE_KEY_WORDS * 32)
  })

  test('small numbers in several places of a key spread over the table', () => {
    const hasher = new KeyHasher(STORAGE_KEY_WORDS, 1)
    const places = new Set<number>()
    const key = new Uint8Array(52)
    for (let owner = 0; owner < 64; owner++) {
      for (let slot = 0; slot < 64; slot++) {
        key[19] = owner
        key[51] = slot
        places.add(hasher.hash(new Uint32Array(key.buffer)) & 8191)
      }
    }
    // 4,096 balls in 8,192 boxes by pure chance fill about 3,223 of them.
    assert(places.size > 2900, `only ${places.size} places`)
  })

  test('the seed changes the hash', () => {
    const key = Uint32Array.of(1, 2, 3, 4, 5)
    assert.notEqual(new KeyHasher(5, 1).hash(key), new KeyHasher(5, 2).hash(key))
  })
})

describe('key order', () => {
  test('is that of the hex texts', () => {
    const near = fc.tuple(words(3), fc.nat({ max: 2 })).map(([key, alike]) => key.fill(0x01020304, 0, alike))
    fc.assert(
      fc.property(fc.array(near, { maxLength: 40 }), (keys) => {
        const table = { keys: Uint32Array.from(keys.flatMap((key) => [...key])), words: 3 }
        const sorted = [...sortByKey(table, keys.length)].map((entry) => hexOf(keys[entry] as Uint32Array))
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
