import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { subscribeRequests } from '../../../test/support/gateway/subscribe-requests.ts'
import { checkProperty, createRandom, mutate, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { GRPC_KINDS } from '../../contract/limits.ts'
import { type CuckooFilter, type SubscribeRequest, SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import { policyOf } from './policy.ts'

const UNLIMITED = { grpcAccountsPerStream: null, grpcKinds: null, grpcBlockedOwners: [] }
/** Allows every kind by name, so that unknown fields are refused. */
const ALL_KINDS = { ...UNLIMITED, grpcKinds: GRPC_KINDS }
const policy = policyOf('Subscribe')

/** What a node that decodes the request would count. */
function countDecoded(request: SubscribeRequest) {
  const cuckoo = (set: CuckooFilter | undefined) =>
    set === undefined ? 0 : Math.max(set.bucketCount * set.entriesPerBucket, Math.floor(set.data.length / 2))
  let accounts = 0
  for (const filter of Object.values(request.accounts)) {
    accounts += filter.account.length + filter.owner.length + cuckoo(filter.cuckooAccountsFilter)
  }
  for (const filter of [...Object.values(request.transactions), ...Object.values(request.transactionsStatus)]) {
    accounts += filter.accountInclude.length + filter.accountExclude.length + filter.accountRequired.length
    accounts += cuckoo(filter.cuckooAccountInclude)
  }
  for (const filter of Object.values(request.blocks)) {
    accounts += filter.accountInclude.length + cuckoo(filter.cuckooAccountInclude)
  }
  const filters = {
    accounts: request.accounts,
    slots: request.slots,
    transactions: request.transactions,
    transactions_status: request.transactionsStatus,
    blocks: request.blocks,
    blocks_meta: request.blocksMeta,
    entry: request.entry,
    block_footer: request.blockFooter,
  }
  const counts = Object.entries(filters).map(([kind, named]) => [kind, Object.keys(named).length] as const)
  return { accounts, filters: Object.fromEntries(counts.filter(([, count]) => count > 0)) }
}

test('counts on the encoded request what a decoder counts', (t) => {
  const property = fc.property(subscribeRequests, (init) => {
    const bytes = encodeMessage(SubscribeRequestSchema, init)
    const verdict = policy(bytes, UNLIMITED)
    assert.ok(verdict.ok)
    const decoded = decodeMessage(SubscribeRequestSchema, bytes) as SubscribeRequest
    assert.deepEqual({ accounts: verdict.accounts, filters: verdict.filters }, countDecoded(decoded))
    // Exact as far as a number is.
    if ((decoded.fromSlot ?? 0n) < 2n ** 53n) {
      assert.equal(verdict.fromSlot, decoded.fromSlot === undefined ? undefined : Number(decoded.fromSlot))
    }
  })
  checkProperty(t, property, 300, 20_000)
})

test('counts accepted damaged requests as a decoder does, and names the rule of refused ones', (t) => {
  const random = createRandom(seedOf(t))
  const samples = fc.sample(subscribeRequests, { numRuns: 50, seed: seedOf(t) })
  const rules = new Set<string>()
  const runs = repeatsOf({ short: 5000, full: 200_000 })
  for (let run = 0; run < runs; run++) {
    const sample = encodeMessage(SubscribeRequestSchema, samples[random(samples.length)] ?? {})
    const bytes = mutate(sample, random)
    const verdict = policy(bytes, run % 2 === 0 ? UNLIMITED : ALL_KINDS)
    rules.add(verdict.ok ? 'passed' : verdict.rule)
    if (!verdict.ok) continue
    const decoded = countDecoded(decodeMessage(SubscribeRequestSchema, bytes) as SubscribeRequest)
    assert.deepEqual(verdict.filters, decoded.filters)
    // A decoder cuts numbers of a cuckoo filter to 32 bits; the wire then counts more, never less.
    assert.ok(verdict.accounts >= Math.min(decoded.accounts, 2 ** 50))
  }
  assert.deepEqual(rules, new Set(['passed', 'readable', 'knownFields', 'singleFields']))
})
