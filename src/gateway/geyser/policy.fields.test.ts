import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { type PolicyLimits, policyOf } from './policy.ts'

/** Whether every node reads a request as the gateway does: fields that are known, sent once, and readable. */

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']
const LIMIT: PolicyLimits = { grpcAccountsPerStream: 4, grpcKinds: null, grpcBlockedOwners: [] }
const subscribe = policyOf('Subscribe')

/** A field of bytes with this number. */
const field = (number: number, bytes: Uint8Array) => Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes])
const accountsOf = (count: number) => Buffer.concat(KEYS.slice(0, count).map((key) => field(2, Buffer.from(key))))

test('refuses a filter sent twice or in two parts, which nodes read differently', () => {
  const name = field(1, Buffer.from('x'))
  const halves = field(1, Buffer.concat([name, field(2, accountsOf(1)), field(2, accountsOf(0))]))
  const entry = field(1, Buffer.concat([name, field(2, accountsOf(1))]))
  for (const request of [halves, Buffer.concat([entry, entry])]) {
    const verdict = subscribe(request, LIMIT)
    assert.ok(!verdict.ok && verdict.rule === 'singleFields')
    assert.match(verdict.message, /^request refused: field \d of SubscribeRequest.* comes twice; rule singleFields/)
  }
  assert.equal(subscribe(entry, LIMIT).ok, true)
})

/** Plans that decide what may be selected, by the limit that does. */
const SELECTING: [string, PolicyLimits][] = [
  ['grpcKinds', { ...LIMIT, grpcKinds: ['slots', 'accounts', 'deshred_transactions'] }],
  ['grpcBlockedOwners', { ...LIMIT, grpcBlockedOwners: ['b'] }],
]
const SLOTS = encodeMessage(SubscribeRequestSchema, { slots: { s: {} } })
const named = (...bytes: Uint8Array[]) => Buffer.concat([field(1, Buffer.from('n')), ...bytes])
/** A field of a number with this value: bytes of the wire type varint. */
const flag = (number: number) => Buffer.from([number * 8, 1])

/** Requests with a field that is not known here. */
const UNKNOWN: [string, string, Uint8Array, string][] = [
  ['Subscribe', 'a kind of filter', Buffer.concat([SLOTS, field(13, named())]), 'field 13 of SubscribeRequest'],
  ['Subscribe', 'a flag', Buffer.concat([SLOTS, flag(14)]), 'field 14 of SubscribeRequest'],
  ['Subscribe', 'a field of a filter', field(2, named(field(2, flag(9)))), 'field 9 of SubscribeRequestFilterSlots'],
  ['Subscribe', 'a field of an entry', field(2, named(field(3, named()))), 'field 3 of SubscribeRequest.slots'],
  [
    'Subscribe',
    'a field of a footer filter',
    field(12, named(field(2, flag(1)))),
    'field 1 of SubscribeRequestFilterBlockFooter',
  ],
  ['SubscribeDeshred', 'a kind of filter', field(9, named()), 'field 9 of SubscribeDeshredRequest'],
  [
    'SubscribeDeshred',
    'a field of a filter',
    field(1, named(field(2, Buffer.concat([field(2, Buffer.from('a')), flag(8)])))),
    'field 8 of SubscribeRequestFilterDeshredTransactions',
  ],
  ['GetSlot', 'a unary call', flag(7), 'field 7 of GetSlotRequest'],
  ['Ping', 'a unary call', Buffer.concat([flag(1), field(9, named())]), 'field 9 of PingRequest'],
]

test('refuses an unknown field by its number where the plan decides what may be selected', () => {
  for (const [limit, limits] of SELECTING) {
    for (const [method, what, request, where] of UNKNOWN) {
      const verdict = policyOf(method)(request, limits)
      assert.ok(!verdict.ok && verdict.rule === 'knownFields', `${method}: ${what}`)
      assert.ok(verdict.message.includes(`${where} is not known here and could select updates, which ${limit}`))
      assert.match(verdict.message, /rule knownFields, leave it out$/)
    }
  }
})

test('passes an unknown field where the plan does not, counting the accounts it could hold', () => {
  for (const [method, what, request] of UNKNOWN) {
    const verdict = policyOf(method)(request, LIMIT)
    assert.ok(verdict.ok && !verdict.isPing, `${method}: ${what}`)
  }
  const hidden = (bytes: number) => subscribe(Buffer.concat([SLOTS, field(13, Buffer.alloc(bytes))]), LIMIT)
  assert.ok(hidden(0).ok)
  const four = hidden(100)
  assert.ok(four.ok && four.accounts === 4)
  // Two unknown fields, one inside a filter: their accounts are added to those that are named.
  const inFilter = field(1, named(field(2, Buffer.concat([accountsOf(1), field(15, Buffer.alloc(64))]))))
  const mixed = subscribe(Buffer.concat([inFilter, field(13, Buffer.alloc(64))]), LIMIT)
  assert.ok(!mixed.ok && mixed.rule === 'grpcAccountsPerStream' && mixed.filter?.kind === 'accounts')
  const over = subscribe(Buffer.concat([SLOTS, field(13, Buffer.alloc(100)), field(14, Buffer.alloc(100))]), LIMIT)
  assert.ok(!over.ok && over.rule === 'grpcAccountsPerStream' && over.filter === undefined)
  assert.match(over.message, /^request refused: fields that are not known here could hold 7 accounts; .* allows 4 /)
  assert.equal(
    subscribe(Buffer.concat([SLOTS, field(13, Buffer.alloc(120))]), { ...LIMIT, grpcAccountsPerStream: null }).ok,
    true,
  )
  const ping = subscribe(Buffer.concat([encodeMessage(SubscribeRequestSchema, { ping: { id: 1 } }), flag(14)]), LIMIT)
  assert.ok(ping.ok && ping.isPing, 'an unknown field beside a ping changes no filter')
})

test('a unary call with known fields passes on every plan', () => {
  const requests: [string, Uint8Array][] = [
    ['Ping', flag(1)],
    ['GetSlot', flag(1)],
    ['GetVersion', Buffer.alloc(0)],
    ['IsBlockhashValid', Buffer.concat([field(1, Buffer.from('hash')), flag(2)])],
  ]
  for (const [, limits] of [...SELECTING, ['none', LIMIT] as const])
    for (const [method, request] of requests) assert.ok(policyOf(method)(request, limits).ok, method)
})

test('refuses bytes that are no request', () => {
  for (const hex of ['ff', '0a', '0aff', '0b0c', '0a03120502', '12020801', '0a041202ffff']) {
    const verdict = subscribe(Buffer.from(hex, 'hex'), LIMIT)
    assert.ok(!verdict.ok && verdict.rule === 'readable', hex)
  }
})
