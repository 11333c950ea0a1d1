import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GRPC_KINDS } from '../../contract/limits.ts'
import { SubscribeDeshredRequestSchema, SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { type PolicyLimits, policyOf } from './policy.ts'

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']
const LIMIT: PolicyLimits = { grpcAccountsPerStream: 4, grpcKinds: null, grpcBlockedOwners: [] }
const subscribe = policyOf('Subscribe')
type Request = Parameters<typeof encodeMessage<typeof SubscribeRequestSchema>>[1]
const check = (request: Request, limits: Partial<PolicyLimits> = {}) =>
  subscribe(encodeMessage(SubscribeRequestSchema, request), { ...LIMIT, ...limits })

/** A field of bytes with this number. */
const field = (number: number, bytes: Uint8Array) => Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes])
const named = (...bytes: Uint8Array[]) => Buffer.concat([field(1, Buffer.from('n')), ...bytes])

test('counts the accounts of every list of every kind, and names the filter that exceeds the limit', () => {
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

test('accepts requests within the limit and requests without accounts', () => {
  const rows: [string, Request, number, object][] = [
    [
      'exactly the limit',
      { accounts: { x: { account: KEYS.slice(0, 2) }, y: { owner: ['a', 'b'] } } },
      4,
      { accounts: 2 },
    ],
    ['no filter', {}, 0, {}],
    ['all transactions', { transactions: { t: {} } }, 0, { transactions: 1 }],
    [
      'slots, entries, metas, footers',
      { slots: { s: {} }, entry: { e: {} }, blocksMeta: { m: {} }, blockFooter: { a: {}, b: {} } },
      0,
      { slots: 1, entry: 1, blocks_meta: 1, block_footer: 2 },
    ],
  ]
  for (const [name, request, accounts, filters] of rows) {
    assert.deepEqual(check(request), { ok: true, accounts, filters, isPing: false, fromSlot: undefined }, name)
  }
  const all = check({ accounts: { x: { account: KEYS } } }, { grpcAccountsPerStream: null })
  assert.ok(all.ok && all.accounts === 6)
  const replay = check({ fromSlot: 77n })
  assert.ok(replay.ok && replay.fromSlot === 77)
})

test('limits filters and fields, the fields by the accounts of the plan', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`s${at}`, {}]))
  assert.equal(check({ slots: many(4096) }).ok, true)
  const filters = check({ slots: many(4000), blockFooter: many(97) })
  assert.ok(!filters.ok && filters.rule === 'grpcRequestFilters')
  assert.match(filters.message, /more than the 4096 filters grpcRequestFilters allows/)

  const slices = (count: number): Request => ({ accountsDataSlice: Array(count).fill({}) })
  assert.equal(check(slices(16_384 + 4)).ok, true)
  const fields = check(slices(16_384 + 5))
  assert.ok(!fields.ok && fields.rule === 'grpcRequestFields')
  assert.match(fields.message, /more than the 16388 fields grpcRequestFields allows/)
  assert.equal(check(slices(100_001), { grpcAccountsPerStream: null }).ok, false)

  // One filter for each account, as some clients make them.
  const own = Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`f${at}`, { account: ['a'] }]))
  assert.equal(check({ accounts: own }, { grpcAccountsPerStream: 2000 }).ok, true)
})

test('counts a request with a ping as one that changes no filter, whatever it carries', () => {
  const isPing = (request: Request) => {
    const verdict = check(request)
    return verdict.ok && verdict.isPing
  }
  assert.equal(isPing({ ping: { id: 1 } }), true)
  assert.equal(isPing({ ping: { id: 1 }, commitment: 1 }), true)
  assert.equal(isPing({ ping: { id: 1 }, slots: { s: {} } }), true)
  assert.equal(isPing({ ping: { id: 1 }, fromSlot: 5n }), true)
  assert.equal(check({ ping: { id: 1 }, slots: { s: {} } }, { grpcKinds: ['accounts'] }).ok, false, 'limits apply')
  assert.equal(isPing({}), false)
})

test('counts an entry without a value, as Rust clients send it, as a filter', () => {
  const verdict = subscribe(Buffer.from('12070a05736c6f74733000', 'hex'), LIMIT)
  assert.deepEqual(verdict, { ok: true, accounts: 0, filters: { slots: 1 }, isPing: false, fromSlot: undefined })
  // An empty filter of accounts selects everything, which a plan with blocked owners refuses.
  const everything = Buffer.from('0a070a05736c6f7473', 'hex')
  assert.equal(subscribe(everything, LIMIT).ok, true)
  assert.equal(subscribe(everything, { ...LIMIT, grpcBlockedOwners: ['b'] }).ok, false)
})

test('refuses a kind that the plan does not have, by name', () => {
  const limits = { grpcKinds: ['accounts', 'slots'] as const }
  assert.equal(check({ accounts: { x: { account: ['a'] } }, slots: { s: {} } }, limits).ok, true)
  const rows: [Request, string][] = [
    [{ transactions: { f: {} } }, 'transactions'],
    [{ transactionsStatus: { f: {} } }, 'transactions_status'],
    [{ blocks: { f: {} } }, 'blocks'],
    [{ blocksMeta: { f: {} } }, 'blocks_meta'],
    [{ slots: { s: {} }, entry: { f: {} } }, 'entry'],
    [{ slots: { s: {} }, blockFooter: { f: {} } }, 'block_footer'],
  ]
  for (const [request, kind] of rows) {
    const verdict = check(request, limits)
    assert.ok(!verdict.ok, kind)
    assert.deepEqual([verdict.rule, verdict.filter], ['grpcKinds', { kind, name: 'f' }])
    assert.match(verdict.message, /allows accounts, slots$/)
  }
})

/** The messages of requests with filters, by method. */
const REQUESTS = { Subscribe: SubscribeRequestSchema, SubscribeDeshred: SubscribeDeshredRequestSchema }
/** Fields of requests that select nothing by themselves. */
const SETTINGS = ['commitment', 'accounts_data_slice', 'ping', 'from_slot']

test('every map of filters in the proto files is a kind of plans, and every other field is known to select nothing', () => {
  const kinds = new Set<string>()
  for (const [method, schema] of Object.entries(REQUESTS)) {
    for (const { fieldKind, name, number } of schema.fields) {
      if (fieldKind !== 'map') {
        assert.ok(SETTINGS.includes(name), `${schema.name}.${name} is new: does it select updates?`)
        continue
      }
      kinds.add(name)
      const others = GRPC_KINDS.filter((kind) => kind !== name)
      const verdict = policyOf(method)(field(number, named()), { ...LIMIT, grpcKinds: others })
      assert.ok(!verdict.ok, `${schema.name}.${name} passes the plan`)
      assert.deepEqual([verdict.rule, verdict.filter], ['grpcKinds', { kind: name, name: 'n' }])
    }
  }
  assert.deepEqual([...kinds].toSorted(), GRPC_KINDS.toSorted())
})

test('every list of texts in the filters of the proto files counts as accounts', () => {
  for (const [method, schema] of Object.entries(REQUESTS)) {
    for (const filters of schema.fields) {
      if (filters.fieldKind !== 'map' || filters.mapKind !== 'message') continue
      for (const list of filters.message.fields) {
        if (list.fieldKind !== 'list' || list.listKind !== 'scalar') continue
        const five = Buffer.concat(Array.from({ length: 5 }, () => field(list.number, Buffer.from('a'))))
        const verdict = policyOf(method)(field(filters.number, named(field(2, five))), LIMIT)
        assert.ok(!verdict.ok && verdict.rule === 'grpcAccountsPerStream', `${filters.message.name}.${list.name}`)
      }
    }
  }
})

test('refuses blocked accounts in any list, in a filter without accounts, and in a cuckoo filter', () => {
  const limits = { grpcBlockedOwners: ['a', 'b'] }
  const refused: [string, Request][] = [
    ['account', { accounts: { f: { account: ['x', 'b'] } } }],
    ['owner', { accounts: { f: { account: ['x'], owner: ['a'] } } }],
    ['include', { transactions: { f: { accountInclude: ['a'] } } }],
    ['required', { transactions: { f: { accountInclude: ['x'], accountRequired: ['a'] } } }],
    ['status', { transactionsStatus: { f: { accountRequired: ['a'] } } }],
    ['blocks', { blocks: { f: { accountInclude: ['a'] } } }],
    ['all accounts', { accounts: { f: { nonemptyTxnSignature: true } } }],
    ['all transactions', { transactions: { f: { vote: false, accountExclude: ['x'] } } }],
    ['all blocks', { blocks: { f: {} } }],
    ['an empty signature', { transactions: { f: { signature: '' } } }],
    ['a set', { accounts: { f: { account: ['x'], cuckooAccountsFilter: { bucketCount: 1, entriesPerBucket: 1 } } } }],
  ]
  for (const [name, request] of refused) {
    const verdict = check(request, limits)
    assert.ok(!verdict.ok && verdict.rule === 'grpcBlockedOwners' && verdict.filter?.name === 'f', name)
    assert.equal(check(request).ok, true, `${name} without the rule`)
  }
  const passed: Request[] = [
    { accounts: { f: { account: ['x'] }, g: { owner: ['y'] } } },
    { transactions: { f: { accountInclude: ['x'], accountExclude: ['a'] } } },
    { transactions: { f: { signature: 's' } } },
    { slots: { f: {} }, blocksMeta: { f: {} }, entry: { f: {} }, blockFooter: { f: {} } },
  ]
  for (const request of passed) assert.equal(check(request, limits).ok, true, JSON.stringify(request))
})

test('shortens a long filter name', () => {
  const verdict = check({ accounts: { ['n'.repeat(5000)]: { account: KEYS } } })
  assert.ok(!verdict.ok && verdict.message.length < 300)
})

test('has a policy for SubscribeDeshred and unary calls, and counts what the requests of unknown methods could name', () => {
  const policy = policyOf('SubscribeDeshred')
  const many = {
    deshredTransactions: { d: { accountInclude: ['a', 'b'], accountExclude: ['c'], accountRequired: ['d', 'e'] } },
  }
  const verdict = policy(encodeMessage(SubscribeDeshredRequestSchema, many), LIMIT)
  assert.ok(!verdict.ok && verdict.filter?.kind === 'deshred_transactions')
  const ping = policy(encodeMessage(SubscribeDeshredRequestSchema, { ping: { id: 1 } }), LIMIT)
  assert.ok(ping.ok && ping.isPing)
  const both = policy(encodeMessage(SubscribeDeshredRequestSchema, { ping: { id: 1 }, slots: { s: {} } }), LIMIT)
  assert.ok(both.ok && !both.isPing, 'decoded streams take the filters of a request with a ping')
  const slots = policy(encodeMessage(SubscribeDeshredRequestSchema, { slots: { s: {} } }), {
    ...LIMIT,
    grpcKinds: ['accounts'],
  })
  assert.ok(!slots.ok && slots.rule === 'grpcKinds' && slots.filter?.kind === 'slots')
  for (const method of ['SubscribeGossip', 'toString'])
    for (const [accounts, ok] of [
      [4, true],
      [5, false],
    ] as const)
      assert.equal(policyOf(method)(Buffer.alloc(accounts * 32), LIMIT).ok, ok, `${accounts} accounts of ${method}`)
})

/** What a request may take of an event loop; the best of five runs counts. */
const CPU_MS_MAX = 50

test('checks the largest requests in little CPU time, also with many blocked owners', (t) => {
  const address = (at: number) => `${'1'.repeat(32)}${String(at).padStart(12, '2')}`
  const blocked = Array.from({ length: 256 }, (_, at) => address(at + 1_000_000))
  const named = Object.fromEntries(Array.from({ length: 4096 }, (_, at) => [`f${at}`, { account: [address(at)] }]))
  const rows: [string, Request][] = [
    ['50,000 accounts', { accounts: { all: { account: Array.from({ length: 50_000 }, (_, at) => address(at)) } } }],
    ['4,096 filters', { accounts: named }],
    ['30,000 slices', { accountsDataSlice: Array(30_000).fill({ offset: 1n, length: 1n }) }],
  ]
  for (const [name, request] of rows) {
    const bytes = encodeMessage(SubscribeRequestSchema, request)
    const limits = { grpcAccountsPerStream: null, grpcKinds: null, grpcBlockedOwners: blocked }
    const runsMs = Array.from({ length: 5 }, () => {
      const before = process.threadCpuUsage()
      assert.equal(subscribe(bytes, limits).ok, true, name)
      const { user, system } = process.threadCpuUsage(before)
      return (user + system) / 1000
    })
    t.diagnostic(`${name}: ${runsMs.map((ms) => ms.toFixed(1)).join(', ')} ms`)
    assert.ok(Math.min(...runsMs) < CPU_MS_MAX, name)
  }
})
