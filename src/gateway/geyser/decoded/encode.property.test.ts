import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { checkProperty, createRandom, randomBytesOf } from '../../../../test/support/process/property.ts'
import { transactionShapes, wireOf } from '../../../../test/support/solana/wire-transactions.ts'
import { SubscribeUpdateDeshredSchema } from '../../../solana/gen/geyser_pb.ts'
import { parseTransaction } from '../../../solana/transaction/transaction.ts'
import { FORMAT_LIMITS, type ParsedTransaction } from '../../../solana/transaction/types.ts'
import { encodeSlotUpdate, encodeTransactionUpdate } from './encode.ts'
import type { DecodedDataSet, DecodedTransaction } from './source.ts'
import { decodedTransaction, withRange } from './test-transactions.ts'

const index = fc.oneof(fc.constant(0), fc.nat(200), fc.nat(40_000))
const sets = fc.record({
  slot: fc.oneof(fc.constant(0), fc.nat(), fc.maxSafeNat()),
  startIndex: index,
  endIndex: index,
  unixMs: fc.oneof(fc.constant(0), fc.nat(), fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 })),
})
const transactions = fc.record({
  shape: transactionShapes('legacy', 0, 1),
  isVote: fc.boolean(),
  hasUnknownTable: fc.boolean(),
  writable: fc.oneof(fc.constant(0), fc.nat(40)),
  readonly: fc.oneof(fc.constant(0), fc.nat(40)),
})

test('a transaction update has the bytes of protobuf-es, for each format and with loaded addresses', (t) => {
  const versions = new Map<unknown, number>()
  checkProperty(
    t,
    fc.property(sets, fc.array(transactions, { minLength: 1, maxLength: 3 }), ({ unixMs, ...place }, given) => {
      const set: DecodedDataSet = { ...place, entries: undefined, transactions: [], arrivalNanos: 0 }
      for (const { shape, isVote, hasUnknownTable, writable, readonly } of given) {
        const wire = wireOf(shape)
        const parse = parseTransaction(wire, FORMAT_LIMITS)
        assert.ok(parse.ok, parse.ok ? '' : parse.reason)
        const random = createRandom(shape.seed)
        const transaction: DecodedTransaction = {
          parsed: parse.transaction,
          wire,
          isVote,
          loadedWritable: Array.from({ length: writable }, () => randomBytesOf(random, 32)),
          loadedReadonly: Array.from({ length: readonly }, () => randomBytesOf(random, 32)),
          hasUnknownTable,
        }
        const expected = Buffer.from(reference(set, transaction, unixMs))
        assert.ok(expected.equals(encodeTransactionUpdate(set, transaction, unixMs)))
        assert.ok(expected.equals(encodeTransactionUpdate(set, withRange(transaction), unixMs)))
        // A node's own update has no wire form.
        assert.ok(expected.equals(encodeTransactionUpdate(set, { ...transaction, wire: undefined }, unixMs)))
        versions.set(shape.version, (versions.get(shape.version) ?? 0) + 1)
      }
    }),
    150,
    5000,
  )
  assert.equal(versions.size, 3)
})

test('a message about a slot that is made while a transaction is added to streams leaves its bytes as they are', () => {
  const set: DecodedDataSet = {
    slot: 1,
    startIndex: 0,
    endIndex: 32,
    entries: undefined,
    transactions: [],
    arrivalNanos: 0,
  }
  const update = encodeTransactionUpdate(set, decodedTransaction(1, { fixed: [1, 2] }), 0)
  const before = Buffer.from(update)
  encodeSlotUpdate({ kind: 'lost', slot: 1, parentSlot: undefined, reason: 'the client did not read' }, 0)
  assert.ok(before.equals(update))
})

function reference(set: DecodedDataSet, transaction: DecodedTransaction, unixMs: number): Uint8Array {
  const { parsed, isVote, loadedWritable, loadedReadonly, hasUnknownTable } = transaction
  const update = create(SubscribeUpdateDeshredSchema, {
    updateOneof: {
      case: 'deshredTransaction',
      value: {
        transaction: {
          signature: parsed.signatures[0] as Uint8Array,
          isVote,
          transaction: { signatures: [...parsed.signatures], message: messageOf(parsed) },
          loadedWritableAddresses: [...loadedWritable],
          loadedReadonlyAddresses: [...loadedReadonly],
          completedDataSetStartingShredIndex: set.startIndex,
          completedDataSetEndingShredIndexExclusive: set.endIndex,
          ...(hasUnknownTable ? { lookupTablesUnknown: true } : {}),
        },
        slot: BigInt(set.slot),
      },
    },
    createdAt: timestampFromMs(unixMs),
  })
  return toBinary(SubscribeUpdateDeshredSchema, update)
}

function messageOf({ header, version, ...parsed }: ParsedTransaction) {
  return {
    header: {
      numRequiredSignatures: header.numRequiredSignatures,
      numReadonlySignedAccounts: header.numReadonlySigned,
      numReadonlyUnsignedAccounts: header.numReadonlyUnsigned,
    },
    accountKeys: [...parsed.staticKeys],
    recentBlockhash: parsed.recentBlockhash,
    instructions: [...parsed.instructions],
    versioned: version !== 'legacy',
    addressTableLookups: [...parsed.addressTableLookups],
    ...(parsed.config === null ? {} : { config: configOf(parsed.config) }),
  }
}

function configOf(config: NonNullable<ParsedTransaction['config']>) {
  const { priorityFeeLamports: fee, computeUnitLimit: units, loadedAccountsDataSizeLimit: size, heapSize } = config
  return {
    ...(fee === null ? {} : { priorityFee: fee }),
    ...(units === null ? {} : { computeUnitLimit: units }),
    ...(size === null ? {} : { loadedAccountsDataSizeLimit: size }),
    ...(heapSize === null ? {} : { heapSize }),
  }
}
