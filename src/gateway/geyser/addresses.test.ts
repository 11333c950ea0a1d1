import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { SubscribeDeshredRequestSchema, SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { checkAddresses } from './addresses.ts'

const KEY = encodeBase58(Buffer.alloc(32, 7))
const SIGNATURE = encodeBase58(Buffer.alloc(64, 7))
type Request = Parameters<typeof encodeMessage<typeof SubscribeRequestSchema>>[1]
const check = (request: Request) => checkAddresses('Subscribe', encodeMessage(SubscribeRequestSchema, request))

test('refuses a text that is no account in any list, and a signature that is none, by filter', () => {
  const rows: [string, (text: string) => Request][] = [
    ['accounts', (text) => ({ accounts: { f: { account: [KEY, text] } } })],
    ['accounts', (text) => ({ accounts: { e: { account: [KEY] }, f: { owner: [text] } } })],
    ['transactions', (text) => ({ transactions: { f: { accountInclude: [text] } } })],
    ['transactions', (text) => ({ transactions: { f: { accountExclude: [text] } } })],
    ['transactions', (text) => ({ transactions: { f: { accountRequired: [text] } } })],
    ['transactions_status', (text) => ({ transactionsStatus: { f: { accountRequired: [text] } } })],
    ['blocks', (text) => ({ slots: { s: {} }, blocks: { f: { accountInclude: [text] } } })],
  ]
  const invalid = ['', 'a', 'nonsense!', KEY.slice(1), `${KEY}1`, KEY.replace(/.$/, '0'), `${KEY} `, SIGNATURE]
  for (const [kind, requestOf] of rows) {
    assert.equal(check(requestOf(KEY)), undefined, kind)
    for (const text of invalid) {
      const refusal = check(requestOf(text))
      assert.deepEqual([refusal?.rule, refusal?.filter], ['readable', { kind, name: 'f' }], `${kind}: ${text}`)
      assert.match(
        refusal?.message ?? '',
        /^filter refused: \w+ "f" contains ".*", which is not an address of 32 bytes/,
      )
    }
  }
  assert.equal(check({ transactions: { f: { signature: SIGNATURE } } }), undefined)
  assert.match(check({ transactions: { f: { signature: KEY } } })?.message ?? '', /is not a signature of 64 bytes/)
  assert.ok((check({ accounts: { ['n'.repeat(5000)]: { account: ['x'.repeat(5000)] } } })?.message.length ?? 999) < 300)
})

test('checks SubscribeDeshred too, and no other method', () => {
  const request = { deshredTransactions: { d: { accountInclude: [KEY], accountExclude: ['x'] } } }
  const bytes = encodeMessage(SubscribeDeshredRequestSchema, request)
  assert.deepEqual(checkAddresses('SubscribeDeshred', bytes)?.filter, { kind: 'deshred_transactions', name: 'd' })
  assert.equal(checkAddresses('GetSlot', bytes), undefined)
})

test('passes what holds no texts of accounts: memcmp, cuckoo filters, other kinds', () => {
  const memcmp = { filter: { case: 'memcmp' as const, value: { data: { case: 'base58' as const, value: 'x!' } } } }
  assert.equal(
    check({
      accounts: { f: { filters: [memcmp], cuckooAccountsFilter: { data: Buffer.alloc(8), bucketCount: 1 } } },
      slots: { s: {} },
      entry: { e: {} },
      ping: { id: 1 },
    }),
    undefined,
  )
})

test('checks the largest requests in less than 50 ms of CPU time', (t) => {
  const key = (at: number) => encodeBase58(Buffer.alloc(32, 0xee).fill(at & 0xff, 0, 1))
  const keys = Array.from({ length: 256 }, (_, at) => key(at))
  const account = Array.from({ length: 90_000 }, (_, at) => keys[at & 0xff] as string)
  const bytes = encodeMessage(SubscribeRequestSchema, { accounts: { all: { account } } })
  const runsMs = Array.from({ length: 5 }, () => {
    const before = process.threadCpuUsage()
    assert.equal(checkAddresses('Subscribe', bytes), undefined)
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1000
  })
  t.diagnostic(`${runsMs.map((ms) => ms.toFixed(1)).join(', ')} ms`)
  assert.ok(Math.min(...runsMs) < 50)
})
