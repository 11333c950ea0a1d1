import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty, createRandom, seedOf } from '../../../test/support/process/property.ts'
import { PackedMap } from './packed-map.ts'
import { LOGGED_BYTES_MAX, TextLog } from './text-log.ts'

type Item = { id: string; value: string }

const packing = { unpack: (text: string) => JSON.parse(text) as Item, keyOf: ({ id }: Item) => id }

function withItems(map: PackedMap<Item>, items: readonly Item[]): PackedMap<Item> {
  const draft = map.draft()
  for (const item of items) draft.set({ key: item.id, text: JSON.stringify(item) })
  return draft.finish()
}

function assertSame(map: PackedMap<Item>, model: ReadonlyMap<string, Item>): void {
  assert.equal(map.size, model.size)
  for (const [key, item] of model) assert.deepEqual(map.get(key), item)
  const byId = (a: Item, b: Item) => (a.id < b.id ? -1 : 1)
  assert.deepEqual([...map.values()].toSorted(byId), [...model.values()].toSorted(byId))
}

test('has the same entries as a Map, and earlier versions do not change', (t) => {
  const item = fc.record({ id: fc.string({ unit: 'grapheme', maxLength: 3 }), value: fc.string({ unit: 'grapheme' }) })
  const property = fc.property(fc.array(fc.array(item, { maxLength: 40 }), { maxLength: 12 }), (steps) => {
    const history: { map: PackedMap<Item>; model: Map<string, Item> }[] = []
    let map = PackedMap.empty(packing)
    let model = new Map<string, Item>()
    for (const items of steps) {
      map = withItems(
        map,
        items.map(({ id, value }) => ({ id, value })),
      )
      model = new Map([...model, ...items.map(({ id, value }) => [id, { id, value }] as const)])
      history.push({ map, model })
    }
    for (const each of history) {
      assertSame(each.map, each.model)
      assert.equal(each.map.get('not there'), undefined)
    }
  })
  checkProperty(t, property, 100, 2000)
})

test('a look-up decodes the value once, and the next one not at all', () => {
  let decoded = 0
  const unpack = (text: string) => {
    decoded += 1
    return packing.unpack(text)
  }
  const counted = { ...packing, unpack }
  const map = withItems(PackedMap.empty(counted), [{ id: 'a', value: '1' }])
  assert.equal(map.get('a')?.value, '1')
  assert.equal(map.get('a')?.value, '1')
  assert.equal(decoded, 1)
})

test('a draft without changes returns the same map', () => {
  const map = withItems(PackedMap.empty(packing), [{ id: 'a', value: '1' }])
  assert.equal(map.draft().finish(), map)
})

test('two drafts of one map are independent', () => {
  const map = withItems(PackedMap.empty(packing), [{ id: 'a', value: '1' }])
  const left = withItems(map, [{ id: 'a', value: 'left' }])
  const right = withItems(map, [{ id: 'a', value: 'right' }])
  assert.deepEqual(
    [map, left, right].map((each) => each.get('a')?.value),
    ['1', 'left', 'right'],
  )
})

test('grows to many keys, and distinguishes keys with the same hash', (t) => {
  // Both have the CRC-32 0x4ddb0c25 (known collision of "plumless" and "buckeroo").
  const twins = [
    { id: 'plumless', value: 'first' },
    { id: 'buckeroo', value: 'second' },
  ]
  const random = createRandom(seedOf(t))
  const items = Array.from({ length: 20_000 }, (_, at) => ({ id: `key ${at}`, value: String(random(1e9)) }))
  const map = withItems(PackedMap.empty(packing), [...items, ...twins])
  assertSame(map, new Map([...items, ...twins].map((item) => [item.id, item])))
})

test('rewrites its log when most of it is obsolete', () => {
  const bulk = 'x'.repeat(60_000)
  let map = PackedMap.empty(packing)
  const kept = withItems(map, [{ id: 'kept', value: 'old' }])
  map = kept
  for (let round = 0; round < 300; round++) map = withItems(map, [{ id: 'busy', value: `${round}${bulk}` }])
  assert.equal(map.get('busy')?.value, `299${bulk}`)
  assert.equal(map.get('kept')?.value, 'old')
  assert.equal(kept.get('busy'), undefined)
})

test('a log returns every text, also across chunk boundaries', () => {
  const log = new TextLog()
  const texts = Array.from({ length: 50 }, (_, at) => String.fromCodePoint(0x41 + at, 0x1f600 + at).repeat(at * 700))
  const positions = texts.map((text) => log.append(text))
  assert.deepEqual(
    positions.map((position) => log.read(position)),
    texts,
  )
  assert.ok(log.bytes >= texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0))
  log.append('y'.repeat(LOGGED_BYTES_MAX))
  assert.throws(() => log.append('y'.repeat(LOGGED_BYTES_MAX + 1)), /longer than LOGGED_BYTES_MAX/)
})
