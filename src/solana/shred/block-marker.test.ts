import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  checkProperty,
  createRandom,
  mutate,
  randomBytesOf,
  repeatsOf,
  seedOf,
} from '../../../test/support/process/property.ts'
import {
  type BlockMarker,
  decodeBlockMarker,
  encodeBlockMarker,
  encodeOpaqueMarker,
  type MarkerContent,
} from './block-marker.ts'

const hash = (byte: number) => new Uint8Array(32).fill(byte)
const FOOTER = {
  variant: 'block-footer',
  bankHash: hash(7),
  producerTimeNanos: 1_794_000_000_123_456_789n,
  userAgent: 'sluice-localnet/1.0',
} as const

function decoded(bytes: Uint8Array): BlockMarker {
  const result = decodeBlockMarker(bytes)
  assert.ok(result.ok, result.ok ? '' : result.reason)
  return result.marker
}

const reasonOf = (bytes: Uint8Array): string => {
  const result = decodeBlockMarker(bytes)
  return result.ok ? 'ok' : result.reason
}

test('the layout is a zero count, version, kind, length, body with a version of its own', () => {
  const bytes = encodeBlockMarker({ variant: 'update-parent', parentSlot: 0x0102_0304_0506, parentBlockId: hash(9) })
  const head = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 41, 0]
  assert.deepEqual([...bytes], [...head, 1, 6, 5, 4, 3, 2, 1, 0, 0, ...hash(9)])
  const footer = encodeBlockMarker({ ...FOOTER, producerTimeNanos: 258n, userAgent: 'ab' })
  // No certificate: three tags.
  assert.deepEqual(
    [...footer],
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 47, 0, 1, ...hash(7), 2, 1, 0, 0, 0, 0, 0, 0, 2, 0x61, 0x62, 0, 0, 0],
  )
})

const anyHash = fc.uint8Array({ minLength: 32, maxLength: 32 })
const anyUserAgent = fc.stringMatching(/^[ -~àß漢]{0,60}$/)
const anyContent: fc.Arbitrary<MarkerContent> = fc.oneof(
  fc.record({
    variant: fc.constant('block-footer' as const),
    bankHash: anyHash,
    producerTimeNanos: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    userAgent: anyUserAgent,
  }),
  fc.record({
    variant: fc.constantFrom('block-header' as const, 'update-parent' as const),
    parentSlot: fc.maxSafeNat(),
    parentBlockId: anyHash,
  }),
  fc.record({
    variant: fc.constant('genesis-certificate' as const),
    certificate: fc.uint8Array({ maxLength: 600 }),
  }),
)

test('decodes every marker as it was encoded', (t) => {
  const roundTrip = fc.property(anyContent, (content) => {
    const { content: read, variant, version } = decoded(encodeBlockMarker(content))
    assert.deepEqual([read, variant, version], [{ ...content }, content.variant, 1])
  })
  checkProperty(t, roundTrip, 1000, 100_000)
})

test('a marker of any version and kind is kept with its bytes', (t) => {
  const anyMarker = fc.record({
    version: fc.nat(0xffff),
    kind: fc.nat(0xff),
    body: fc.uint8Array({ maxLength: 300 }),
  })
  const kept = fc.property(anyMarker, ({ version, kind, body }) => {
    const bytes = encodeOpaqueMarker({ version, kind: version === 1 ? kind : undefined, body })
    const marker = decoded(bytes)
    assert.deepEqual([marker.version, marker.body], [version, body])
    assert.equal(marker.kind, version === 1 ? kind : undefined)
    if (version !== 1 || kind > 3) assert.deepEqual([marker.variant, marker.content], ['unknown', undefined])
    assert.deepEqual(encodeOpaqueMarker(marker), bytes)
  })
  checkProperty(t, kept, 2000, 100_000)
  const future = decoded(encodeOpaqueMarker({ version: 1, kind: 4, body: Uint8Array.of(5, 6) }))
  assert.deepEqual([future.variant, future.kind, future.body], ['unknown', 4, Uint8Array.of(5, 6)])
})

test('a known kind whose body has another form is kept without content', () => {
  for (const [kind, variant, body] of [
    [0, 'block-footer', new Uint8Array(40)],
    [0, 'block-footer', Uint8Array.of(...new Uint8Array(40), 2, 0x61)],
    [0, 'block-footer', Uint8Array.of(...new Uint8Array(40), 2, 0x1b, 0x5b)],
    [0, 'block-footer', Uint8Array.of(...new Uint8Array(40), 1, 0xff)],
    [1, 'block-header', new Uint8Array(39)],
    [2, 'update-parent', new Uint8Array(0)],
    [2, 'update-parent', new Uint8Array(41)],
    [2, 'update-parent', new Uint8Array(40).fill(0xff)],
  ] as const) {
    const marker = decoded(encodeOpaqueMarker({ version: 1, kind, body }))
    assert.deepEqual([marker.variant, marker.content, marker.body], [variant, undefined, body])
  }
})

test('bodies without a version byte are read too', () => {
  const parent = encodeBlockMarker({ variant: 'update-parent', parentSlot: 257, parentBlockId: hash(3) }).subarray(14)
  const update = decoded(encodeOpaqueMarker({ version: 1, kind: 2, body: parent }))
  assert.deepEqual(update.content, { variant: 'update-parent', parentSlot: 257, parentBlockId: hash(3) })
  for (let length = 0; length < 60; length++) {
    const content: MarkerContent = { ...FOOTER, userAgent: 'x'.repeat(length) }
    const body = encodeBlockMarker(content).subarray(14, -3)
    const marker = decoded(encodeOpaqueMarker({ version: 1, kind: 0, body }))
    assert.deepEqual(marker.content, content, `user agent of ${length}`)
  }
})

test('a footer with certificates is read', (t) => {
  const random = createRandom(seedOf(t))
  for (let length = 0; length < 60; length++) {
    const content: MarkerContent = { ...FOOTER, userAgent: 'x'.repeat(length) }
    const head = encodeBlockMarker(content).subarray(13, -3)
    const body = Uint8Array.of(...head, 1, ...randomBytesOf(random, 120), 0, 0)
    assert.deepEqual(decoded(encodeOpaqueMarker({ version: 1, kind: 0, body })).content, content, `agent of ${length}`)
  }
})

test('as in Agave, the length field and the bytes behind a body change nothing', (t) => {
  const anyForm = fc.tuple(
    anyContent.filter(({ variant }) => variant !== 'genesis-certificate'),
    fc.nat(0xffff),
    fc.uint8Array({ maxLength: 40 }),
  )
  const same = fc.property(anyForm, ([content, length, trailing]) => {
    const bytes = Uint8Array.of(...encodeBlockMarker(content), ...trailing)
    new DataView(bytes.buffer).setUint16(11, length, true)
    assert.deepEqual(decoded(bytes).content, { ...content })
  })
  checkProperty(t, same, 1000, 100_000)
})

test('refuses a marker that is cut', () => {
  const update = { variant: 'update-parent', parentSlot: 300, parentBlockId: hash(3) } as const
  for (const content of [FOOTER, update]) {
    const bytes = encodeBlockMarker(content)
    for (let length = 0; length < bytes.length; length++)
      assert.equal(reasonOf(bytes.subarray(0, length)), 'truncated', `cut at ${length}`)
  }
})

test('mutated markers never throw, and what is decoded has the bytes of the marker', (t) => {
  const random = createRandom(seedOf(t))
  const bytes = encodeBlockMarker(FOOTER)
  let accepted = 0
  const runs = repeatsOf({ short: 5000, full: 300_000 })
  for (let run = 0; run < runs; run++) {
    const mutant = mutate(bytes, random)
    mutant.fill(0, 0, 8)
    const result = decodeBlockMarker(mutant)
    if (!result.ok) continue
    accepted += 1
    const { version, kind, body } = result.marker
    const bodyAt = version === 1 ? 13 : 10
    assert.deepEqual([version, kind], [Buffer.from(mutant).readUInt16LE(8), version === 1 ? mutant[10] : undefined])
    assert.deepEqual(body, mutant.subarray(bodyAt, bodyAt + body.length))
  }
  assert.ok(accepted > 100)
})

test('the encoder refuses what does not fit', () => {
  assert.throws(() => encodeBlockMarker({ ...FOOTER, userAgent: 'x'.repeat(256) }), /at most 255 bytes/)
  assert.throws(() => encodeBlockMarker({ ...FOOTER, userAgent: 'a\u001bb' }), /printable/)
  assert.throws(() => encodeBlockMarker({ ...FOOTER, bankHash: new Uint8Array(31) }), /32 bytes/)
  const certificate = new Uint8Array(65_536)
  assert.throws(() => encodeBlockMarker({ variant: 'genesis-certificate', certificate }), /at most 65535 bytes/)
})
