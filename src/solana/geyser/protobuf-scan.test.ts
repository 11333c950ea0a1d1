import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { subscribeRequests } from '../../../test/support/gateway/subscribe-requests.ts'
import {
  checkProperty,
  createRandom,
  mutate,
  randomBytesOf,
  repeatsOf,
  seedOf,
} from '../../../test/support/process/property.ts'
import { SubscribeRequestSchema } from '../gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from './protobuf.ts'
import { type ScanProblem, scanMessage } from './protobuf-scan.ts'

const scan = (bytes: Uint8Array, fieldsMax = 100_000, entriesMax = 5000) =>
  scanMessage(SubscribeRequestSchema, bytes, { fieldsMax, entriesMax })

/** A bytes field with this number. */
const field = (number: number, ...bytes: Uint8Array[]) => {
  const body = Buffer.concat(bytes)
  return Buffer.concat([Buffer.from([number * 8 + 2, body.length]), body])
}
const text = (number: number, value: string) => field(number, Buffer.from(value))
const hex = (value: string) => Buffer.from(value, 'hex')
const SLOTS = field(2, text(1, 's'), field(2))

test('refuses messages that decoders could read differently, with the names of message and field', () => {
  const rows: [string, Uint8Array, ScanProblem['rule'], string, number][] = [
    ['an unknown field', Buffer.concat([SLOTS, field(13, text(1, 'f'))]), 'known-fields', 'SubscribeRequest', 13],
    ['an unknown number', Buffer.concat([SLOTS, hex('7001')]), 'known-fields', 'SubscribeRequest', 14],
    [
      'an unknown field of a filter',
      field(2, text(1, 's'), field(2, hex('4801'))),
      'known-fields',
      'SubscribeRequestFilterSlots',
      9,
    ],
    ['an unknown field of an entry', field(2, text(1, 's'), text(3, 'x')), 'known-fields', 'SubscribeRequest.slots', 3],
    [
      'an unknown field deep inside',
      field(1, text(1, 'a'), field(2, field(4, field(1, hex('7801'))))),
      'known-fields',
      'SubscribeRequestFilterAccountsFilterMemcmp',
      15,
    ],
    ['a number twice', hex('58015802'), 'single-fields', 'SubscribeRequest', 11],
    ['a message twice', Buffer.concat([field(9, hex('0801')), field(9)]), 'single-fields', 'SubscribeRequest', 9],
    [
      'a filter in two halves',
      field(1, text(1, 'a'), field(2, text(2, 'x')), field(2)),
      'single-fields',
      'SubscribeRequest.accounts',
      2,
    ],
    ['two names', field(2, text(1, 's'), text(1, 't')), 'single-fields', 'SubscribeRequest.slots', 1],
    ['the same name twice', Buffer.concat([SLOTS, SLOTS]), 'single-fields', 'SubscribeRequest', 2],
    [
      'no name and the empty name',
      Buffer.concat([field(2), field(2, text(1, ''))]),
      'single-fields',
      'SubscribeRequest',
      2,
    ],
    [
      'a name after its filter',
      Buffer.concat([SLOTS, field(2, field(2), text(1, 's'))]),
      'single-fields',
      'SubscribeRequest',
      2,
    ],
    [
      'two members of a oneof',
      field(1, field(2, field(4, hex('10051801')))),
      'single-fields',
      'SubscribeRequestFilterAccountsFilter',
      3,
    ],
    ['a number as bytes', text(6, 'x'), 'readable', 'SubscribeRequest', 6],
    ['bytes as a number', hex('0801'), 'readable', 'SubscribeRequest', 1],
    ['fixed bytes for a number', hex('590000000000000000'), 'readable', 'SubscribeRequest', 11],
    ['a group', hex('0b0c'), 'readable', 'SubscribeRequest', 1],
    ['the end of a group', hex('0c'), 'readable', 'SubscribeRequest', 1],
    ['wire type 6', hex('0e'), 'readable', 'SubscribeRequest', 1],
    ['field 0', hex('0000'), 'readable', 'SubscribeRequest', 0],
    ['a tag of 33 bits that a cast makes slots', hex('9280808010020a00'), 'readable', 'SubscribeRequest', 2 ** 29 + 2],
    ['a tag longer than needed', hex('928000020a00'), 'readable', 'SubscribeRequest', 2],
    ['a length longer than needed', hex('128000'), 'readable', 'SubscribeRequest', 2],
    ['a value longer than needed', hex('308100'), 'readable', 'SubscribeRequest', 6],
    ['a value of 70 bits', hex('58ffffffffffffffffff7f'), 'readable', 'SubscribeRequest', 11],
    ['a value of eleven bytes', hex('58ffffffffffffffffffff01'), 'readable', 'SubscribeRequest', 11],
    ['a length beyond the end', hex('1203'), 'readable', 'SubscribeRequest', 2],
    [
      'a length beyond its message',
      Buffer.concat([field(2, hex('0a05')), hex('0000000000')]),
      'readable',
      'SubscribeRequest.slots',
      1,
    ],
    ['a tag without a value', hex('58'), 'readable', 'SubscribeRequest', 11],
    ['a name that is no text', field(2, field(1, hex('ff'))), 'readable', 'SubscribeRequest.slots', 1],
    [
      'an account that is no text',
      field(1, field(2, field(2, hex('c328')))),
      'readable',
      'SubscribeRequestFilterAccounts',
      2,
    ],
  ]
  for (const [name, bytes, rule, message, number] of rows) {
    const { problem } = scan(bytes)
    assert.deepEqual([problem?.rule, problem?.message, problem?.field], [rule, message, number], name)
  }
})

test('names the map entry that holds the message, wherever its key is', () => {
  const unknown = field(2, hex('4801'))
  for (const entry of [field(2, text(1, 's'), unknown), field(2, unknown, text(1, 's'))])
    assert.equal(scan(entry).problem?.entry, 's')
  assert.equal(scan(field(2, unknown)).problem?.entry, '')
  assert.equal(scan(hex('7001')).problem?.entry, undefined)
})

test('accepts unusual encodings that all decoders read alike', () => {
  const rows: [string, Uint8Array][] = [
    ['nothing', Buffer.alloc(0)],
    ['an entry without a value, as Rust clients send it', hex('12070a05736c6f74733000')],
    ['an entry without a key', field(2, field(2))],
    ['the largest number', hex('58ffffffffffffffffff01')],
    ['a negative number', field(9, hex('08ffffffffffffffffff01'))],
    ['one name in two kinds', Buffer.concat([SLOTS, field(8, text(1, 's'))])],
    ['fields in another order', Buffer.concat([hex('5801'), SLOTS])],
    ['a name outside ASCII', field(2, text(1, 'ß→😀'))],
  ]
  for (const [name, bytes] of rows) assert.equal(scan(bytes).problem, undefined, name)
})

test('counts fields at every level and stops at the first above the limit', () => {
  const bytes = field(1, text(1, 'a'), field(2, text(2, 'x'), text(2, 'y')))
  assert.deepEqual(scan(bytes, 5), { fields: 5, unknownBytes: 0, problem: undefined })
  const { fields, problem } = scan(bytes, 4)
  assert.deepEqual([fields, problem?.rule], [5, 'fields-max'])
  const many = Buffer.alloc(4_000_000, field(7))
  assert.equal(scan(many, 1000).fields, 1001)
})

test('passes unknown fields at any depth where they are allowed, and counts their bytes', () => {
  const known = field(2, text(1, 's'), field(2, hex('4801'), text(10, 'abc')))
  const bytes = Buffer.concat([known, field(13, hex('0102030405')), hex('7001')])
  const limits = { fieldsMax: 8, entriesMax: 1, allowsUnknown: true }
  assert.deepEqual(scanMessage(SubscribeRequestSchema, bytes, limits), {
    fields: 7,
    unknownBytes: 8,
    problem: undefined,
  })
  const { problem } = scanMessage(SubscribeRequestSchema, bytes, { ...limits, fieldsMax: 6 })
  assert.equal(problem?.rule, 'fields-max')
  // What is known is still checked, and the message must be readable to its end.
  for (const [more, rule] of [
    [SLOTS, 'single-fields'],
    [hex('6b'), 'readable'],
    [hex('6a05'), 'readable'],
  ] as const)
    assert.equal(
      scanMessage(SubscribeRequestSchema, Buffer.concat([SLOTS, hex('7001'), more]), { ...limits, entriesMax: 9 })
        .problem?.rule,
      rule,
    )
})

test('counts the entries of all maps together', () => {
  const bytes = Buffer.concat([SLOTS, field(2, text(1, 't')), field(8, text(1, 's'))])
  assert.equal(scan(bytes, 100, 3).problem, undefined)
  assert.deepEqual(scan(bytes, 100, 2).problem, { rule: 'entries-max', message: 'SubscribeRequest', field: 8 })
})

test('accepts every request of the schema', (t) => {
  const property = fc.property(subscribeRequests, (init) => {
    assert.equal(scan(encodeMessage(SubscribeRequestSchema, init)).problem, undefined)
  })
  checkProperty(t, property, 200, 20_000)
})

test('for any bytes, the scan refuses with a rule or accepts a message that every decoder accepts', (t) => {
  const random = createRandom(seedOf(t))
  const samples = fc.sample(subscribeRequests, { numRuns: 50, seed: seedOf(t) })
  let passed = 0
  const runs = repeatsOf({ short: 5000, full: 200_000 })
  for (let run = 0; run < runs; run++) {
    const sample = encodeMessage(SubscribeRequestSchema, samples[random(samples.length)] ?? {})
    const bytes = run % 5 === 0 ? randomBytesOf(random, random(40)) : mutate(sample, random)
    const { problem, fields } = scan(bytes)
    assert.ok(fields <= bytes.length / 2 + 1)
    if (problem !== undefined) {
      assert.ok(['readable', 'known-fields', 'single-fields'].includes(problem.rule))
      continue
    }
    passed += 1
    const decoded = decodeMessage(SubscribeRequestSchema, bytes)
    assert.ok(decoded !== undefined, Buffer.from(bytes).toString('hex'))
    assert.equal(decoded.$unknown, undefined)
  }
  assert.ok(passed > 100, `${passed} passed`)
})

test('for any content, twice the input takes at most two and a half times the steps', () => {
  const makers: [string, (count: number) => Uint8Array][] = [
    ['filters', (count) => Buffer.concat(Array.from({ length: count }, (_, at) => field(2, text(1, `s${at}`))))],
    ['slices', (count) => Buffer.concat(Array(count).fill(field(7, hex('08011001'))))],
    [
      'filters of accounts',
      (count) => {
        const filters = Buffer.concat(Array(count).fill(field(4, hex('1005'))))
        const entry = Buffer.concat([hex('12'), lengthOf(filters), filters])
        return Buffer.concat([hex('0a'), lengthOf(entry), entry])
      },
    ],
  ]
  for (const [name, make] of makers) {
    const [once, twice] = [make(2000), make(4000)].map((bytes) => scan(bytes)) as [
      ReturnType<typeof scan>,
      ReturnType<typeof scan>,
    ]
    assert.deepEqual([once.problem, twice.problem], [undefined, undefined], name)
    assert.ok(twice.fields <= 2.5 * once.fields, name)
  }
})

function lengthOf({ length }: Uint8Array): Buffer {
  const bytes: number[] = []
  let rest = length
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  return Buffer.from([...bytes, rest])
}
