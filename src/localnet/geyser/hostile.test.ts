import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { account, address, createChainDouble, MEMO } from '../../../test/support/solana/chain-double.ts'
import { FrameBatch } from '../../platform/grpc/framing.ts'
import { SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import { deliver } from './deliver.ts'
import { compileFilter } from './filter/filter.ts'
import { DEFAULT_FILTER_LIMITS } from './filter/limits.ts'
import { createSlotContent } from './slot-content.ts'

const REQUEST = encodeMessage(SubscribeRequestSchema, {
  accounts: {
    a: {
      account: [address('x')],
      owner: [MEMO],
      filters: [
        { filter: { case: 'memcmp', value: { offset: 3n, data: { case: 'base58', value: '2g' } } } },
        { filter: { case: 'datasize', value: 165n } },
        { filter: { case: 'lamports', value: { cmp: { case: 'gt', value: 5n } } } },
      ],
      nonemptyTxnSignature: true,
      cuckooAccountsFilter: { data: new Uint8Array(16), bucketCount: 2, entriesPerBucket: 4, fingerprintBits: 16 },
    },
  },
  slots: { s: { interslotUpdates: true } },
  transactions: { t: { accountInclude: [MEMO], accountExclude: [address('y')], failed: false, tokenAccounts: 1 } },
  transactionsStatus: { ts: { vote: false } },
  blocks: { b: { accountInclude: [MEMO], includeAccounts: true, includeEntries: true } },
  blocksMeta: { m: {} },
  entry: { e: {} },
  commitment: 1,
  accountsDataSlice: [
    { offset: 1n, length: 2n },
    { offset: 7n, length: 20n },
  ],
  fromSlot: 7n,
})

const mutation = fc.record({
  cut: fc.nat({ max: REQUEST.length }),
  changes: fc.array(fc.tuple(fc.nat({ max: REQUEST.length - 1 }), fc.integer({ min: 0, max: 255 })), { maxLength: 6 }),
})

test('a mutated request is served or refused, and a valid one is still served after it', (t) => {
  const double = createChainDouble()
  const block = double.produce({
    transactions: [
      double.transaction({ writes: [[address('x'), account({ owner: MEMO, data: new Uint8Array(165) })]] }),
    ],
    systemWrites: [double.write(MEMO, null)],
  })
  const content = createSlotContent(block, 0)
  let served = 0
  checkProperty(
    t,
    fc.property(fc.oneof(mutation.map(damage), fc.uint8Array({ maxLength: 200 })), (bytes) => {
      const request = decodeMessage(SubscribeRequestSchema, bytes)
      if (!request) return
      const compiled = compileFilter(request, DEFAULT_FILTER_LIMITS)
      if (!compiled.ok) {
        assert.ok(compiled.reason.length > 0)
        return
      }
      served++
      const batch = new FrameBatch('identity')
      for (const update of [...content.live, ...content.summary]) deliver(update, compiled.filter, batch)
      batch.take()
    }),
    2000,
    100_000,
  )
  assert.ok(served > 0)
})

function damage({ cut, changes }: { cut: number; changes: [number, number][] }): Uint8Array {
  const bytes = Uint8Array.from(REQUEST)
  for (const [at, value] of changes) bytes[at] = value
  return cut === 0 ? bytes : bytes.subarray(0, changes.length % 2 === 0 ? bytes.length : cut)
}
