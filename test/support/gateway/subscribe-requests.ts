import fc from 'fast-check'
import { encodeBase58 } from '../../../src/solana/crypto/base58.ts'
import type { SubscribeRequestSchema } from '../../../src/solana/gen/geyser_pb.ts'
import type { encodeMessage } from '../../../src/solana/geyser/protobuf.ts'

export type SubscribeInit = Parameters<typeof encodeMessage<typeof SubscribeRequestSchema>>[1]

const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
/** Counts of a cuckoo filter, small enough for exact products. */
const count = fc.nat({ max: 2 ** 20 })
/** Mostly valid ones, as a node requires them. */
const textOf = (size: number) =>
  fc.oneof(
    { weight: 19, arbitrary: fc.uint8Array({ minLength: size, maxLength: size }).map(encodeBase58) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
  )
const keys = fc.array(textOf(32), { maxLength: 4 })
const some = <T>(model: { [Key in keyof T]: fc.Arbitrary<T[Key]> }) => fc.record(model, { requiredKeys: [] })
const named = <T>(filter: fc.Arbitrary<T>) =>
  fc.dictionary(fc.string({ unit: 'grapheme', maxLength: 12 }), filter, { maxKeys: 4, noNullPrototype: true })

const cuckoo = some({
  data: fc.uint8Array({ maxLength: 40 }),
  bucketCount: count,
  entriesPerBucket: count,
  fingerprintBits: count,
  hashSeed: u64,
})
const memcmp = fc.record({
  offset: u64,
  data: fc.oneof(
    fc.record({ case: fc.constant('bytes' as const), value: fc.uint8Array({ maxLength: 20 }) }),
    fc.record({ case: fc.constant('base58' as const), value: fc.string() }),
  ),
})
const lamports = fc.record({ cmp: fc.record({ case: fc.constantFrom('eq' as const, 'gt' as const), value: u64 }) })
const accountsFilter = fc.record({
  filter: fc.oneof(
    fc.record({ case: fc.constant('memcmp' as const), value: memcmp }),
    fc.record({ case: fc.constant('datasize' as const), value: u64 }),
    fc.record({ case: fc.constant('lamports' as const), value: lamports }),
  ),
})
const transactions = some({
  vote: fc.boolean(),
  failed: fc.boolean(),
  accountInclude: keys,
  accountExclude: keys,
  accountRequired: keys,
  signature: textOf(64),
  cuckooAccountInclude: cuckoo,
  tokenAccounts: fc.constantFrom(0, 1),
})

/** Requests with any combination of filters. */
export const subscribeRequests: fc.Arbitrary<SubscribeInit> = some({
  accounts: named(
    some({
      account: keys,
      owner: keys,
      filters: fc.array(accountsFilter, { maxLength: 3 }),
      nonemptyTxnSignature: fc.boolean(),
      cuckooAccountsFilter: cuckoo,
    }),
  ),
  slots: named(some({ filterByCommitment: fc.boolean(), interslotUpdates: fc.boolean() })),
  transactions: named(transactions),
  transactionsStatus: named(transactions),
  blocks: named(some({ accountInclude: keys, includeEntries: fc.boolean(), cuckooAccountInclude: cuckoo })),
  blocksMeta: named(fc.constant({})),
  entry: named(fc.constant({})),
  blockFooter: named(fc.constant({})),
  commitment: fc.constantFrom(0, 1, 2),
  accountsDataSlice: fc.array(fc.record({ offset: u64, length: u64 }), { maxLength: 3 }),
  ping: fc.record({ id: fc.integer() }),
  fromSlot: u64,
})
