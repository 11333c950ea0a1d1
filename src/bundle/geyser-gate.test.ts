import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SubscribeDeshredRequestSchema, SubscribeRequestSchema } from '../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../solana/protobuf.ts'
import { type Gate, gateOf } from './geyser-gate.ts'

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']
const LIMIT = { grpcAccountsPerStream: 4 }
const subscribe = gateOf('Subscribe') as Gate
type Request = Parameters<typeof encodeMessage<typeof SubscribeRequestSchema>>[1]
const check = (request: Request, limits: { grpcAccountsPerStream: number | null } = LIMIT) =>
  subscribe(encodeMessage(SubscribeRequestSchema, request), limits)

/** A field of bytes with this number. */
const field = (number: number, bytes: Uint8Array) => Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes])
const accountsOf = (count: number) => Buffer.concat(KEYS.slice(0, count).map((key) => field(2, Buffer.from(key))))

test('every list of every kind counts, and the filter at which it is too much is named', () => {
  const rows: [string, Request, string, string][] = [
    ['account', { accounts: { x: { account: KEYS.slice(0, 5) } } }, 'accounts', 'x'],
    ['owner', { accounts: { x: { owner: KEYS.slice(0, 5) } } }, 'accounts', 'x'],
    ['account and owner', { accounts: { x: { account: KEYS.slice(0, 3), owner: ['o', 'p'] } } }, 'accounts', 'x'],
    ['include', { transactions: { t: { accountInclude: KEYS.slice(0, 5) } } }, 'transactions', 't'],
    ['exclude', { transactions: { t: { accountExclude: KEYS.slice(0, 5) } } }, 'transactions', 't'],
    ['required', { transactions: { t: { accountRequired: KEYS.slice(0, 5) } } }, 'transactions', 't'],
    ['status', { transactionsStatus: { s: { accountRequired: KEYS.slice(0, 5) } } }, 'transactions_status', 's'],
    ['blocks', { blocks: { b: { accountInclude: KEYS.slice(0, 5) } } }, 'blocks', 'b'],
    [
      'the sum over filters of one kind',
      { accounts: { x: { account: KEYS.slice(0, 3) }, y: { account: KEYS.slice(0, 2) } } },
      'accounts',
      'y',
    ],
    [
      'the sum over kinds',
      { accounts: { x: { account: KEYS.slice(0, 3) } }, transactions: { t: { accountInclude: ['a', 'b'] } } },
      'transactions',
      't',
    ],
    [
      'a cuckoo filter by what it can hold',
      { accounts: { x: { cuckooAccountsFilter: { bucketCount: 2, entriesPerBucket: 4 } } } },
      'accounts',
      'x',
    ],
    [
      'a cuckoo filter by its data',
      { blocks: { b: { cuckooAccountInclude: { data: Buffer.alloc(64), bucketCount: 1 } } } },
      'blocks',
      'b',
    ],
    [
      'a name that is special to a language',
      { accounts: { ['__proto__']: { account: KEYS } } },
      'accounts',
      '__proto__',
    ],
  ]
  for (const [name, request, kind, filter] of rows) {
    const verdict = check(request)
    assert.ok(!verdict.ok, name)
    assert.deepEqual([verdict.rule, verdict.filter], ['grpcAccountsPerStream', { kind, name: filter }], name)
    assert.ok(verdict.message.includes(`${kind} "${filter}"`) && verdict.message.includes('allows 4 '), verdict.message)
  }
})

test('what stays within the limit passes, and so does what names no account', () => {
  const rows: [string, Request, number][] = [
    ['exactly the limit', { accounts: { x: { account: KEYS.slice(0, 2) }, y: { owner: ['a', 'b'] } } }, 4],
    ['no filter', {}, 0],
    ['all transactions', { transactions: { t: {} } }, 0],
    ['slots, entries, metas', { slots: { s: {} }, entry: { e: {} }, blocksMeta: { m: {} } }, 0],
  ]
  for (const [name, request, accounts] of rows) {
    assert.deepEqual(check(request), { ok: true, accounts, isPing: false }, name)
  }
  const all = check({ accounts: { x: { account: KEYS } } }, { grpcAccountsPerStream: null })
  assert.deepEqual(all, { ok: true, accounts: 6, isPing: false })
})

test('a filter sent twice, or in two halves, counts in full', () => {
  const name = field(1, Buffer.from('x'))
  const halves = field(1, Buffer.concat([name, field(2, accountsOf(5)), field(2, accountsOf(0))]))
  assert.equal(subscribe(halves, LIMIT).ok, false)
  const entry = field(1, Buffer.concat([name, field(2, accountsOf(3))]))
  assert.equal(subscribe(Buffer.concat([entry, entry]), LIMIT).ok, false)
  assert.equal(subscribe(entry, LIMIT).ok, true)
})

test('a ping is one only when nothing stands beside it that changes filters', () => {
  const isPing = (request: Request) => {
    const verdict = check(request)
    return verdict.ok && verdict.isPing
  }
  assert.equal(isPing({ ping: { id: 1 } }), true)
  assert.equal(isPing({ ping: { id: 1 }, commitment: 1 }), true)
  assert.equal(isPing({ ping: { id: 1 }, slots: { s: {} } }), false)
  assert.equal(isPing({ ping: { id: 1 }, fromSlot: 5n }), false)
  assert.equal(isPing({}), false)
})

test('an entry without a value, as Rust clients send it, is a filter', () => {
  const verdict = subscribe(Buffer.from('12070a05736c6f74733000', 'hex'), LIMIT)
  assert.deepEqual(verdict, { ok: true, accounts: 0, isPing: false })
})

test('what cannot be read is refused', () => {
  for (const hex of ['ff', '0a', '0aff', '0b0c', '0a03120502', '12020801', '0a041202ffff']) {
    const verdict = subscribe(Buffer.from(hex, 'hex'), LIMIT)
    assert.ok(!verdict.ok && verdict.rule === 'readable', hex)
  }
})

test('a long name is shown in part', () => {
  const verdict = check({ accounts: { ['n'.repeat(5000)]: { account: KEYS } } })
  assert.ok(!verdict.ok && verdict.message.length < 300)
})

test('the request of SubscribeDeshred has a gate of its own; other methods have none', () => {
  const gate = gateOf('SubscribeDeshred') as Gate
  const many = {
    deshredTransactions: { d: { accountInclude: ['a', 'b'], accountExclude: ['c'], accountRequired: ['d', 'e'] } },
  }
  const verdict = gate(encodeMessage(SubscribeDeshredRequestSchema, many), LIMIT)
  assert.ok(!verdict.ok && verdict.filter?.kind === 'deshred_transactions')
  const ping = gate(encodeMessage(SubscribeDeshredRequestSchema, { ping: { id: 1 } }), LIMIT)
  assert.ok(ping.ok && ping.isPing)
  for (const method of ['GetSlot', 'SubscribeGossip', 'toString']) assert.equal(gateOf(method), undefined)
})
