import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TransactionSchema } from '../../solana/gen/solana-storage_pb.ts'
import { decodeMessage } from '../../solana/geyser/protobuf.ts'
import { ProtobufWriter } from '../../solana/geyser/protobuf-writer.ts'
import { writeTransaction } from '../../solana/geyser/write-transaction.ts'
import type { ParsedTransaction } from '../../solana/transaction/transaction.ts'

const PLAIN: ParsedTransaction = {
  version: 'legacy',
  signatures: [new Uint8Array(64).fill(1)],
  message: new Uint8Array(0),
  header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 0 },
  staticKeys: [new Uint8Array(32)],
  recentBlockhash: new Uint8Array(32).fill(3),
  instructions: [],
  addressTableLookups: [],
  config: null,
  wireLength: 0,
}

function encode(parts: Partial<ParsedTransaction>) {
  const writer = new ProtobufWriter()
  writeTransaction(writer, { ...PLAIN, ...parts })
  const message = decodeMessage(TransactionSchema, writer.take())?.message
  assert.ok(message)
  return message
}

test('a legacy message is not versioned and keeps keys of zeros', () => {
  const message = encode({})
  assert.deepEqual([message.versioned, message.config, message.accountKeys.length], [false, undefined, 1])
})

test('a v0 message is versioned and carries its lookups', () => {
  const lookup = {
    accountKey: new Uint8Array(32).fill(9),
    writableIndexes: Uint8Array.of(0, 7),
    readonlyIndexes: new Uint8Array(0),
  }
  const message = encode({ version: 0, addressTableLookups: [lookup, lookup] })
  assert.deepEqual([message.versioned, message.config], [true, undefined])
  assert.equal(message.addressTableLookups.length, 2)
  assert.deepEqual([...(message.addressTableLookups[0]?.writableIndexes ?? [])], [0, 7])
})

test('a v1 message is versioned and recognized by its config, even an empty one', () => {
  const config = {
    priorityFeeLamports: 0n,
    computeUnitLimit: 1000,
    loadedAccountsDataSizeLimit: null,
    heapSize: 32_768,
  }
  const message = encode({ version: 1, config })
  assert.equal(message.versioned, true)
  assert.deepEqual(
    [message.config?.priorityFee, message.config?.computeUnitLimit, message.config?.heapSize],
    [0n, 1000, 32_768],
  )
  assert.equal(message.config?.loadedAccountsDataSizeLimit, undefined)
  const nothing = {
    priorityFeeLamports: null,
    computeUnitLimit: null,
    loadedAccountsDataSizeLimit: null,
    heapSize: null,
  }
  assert.ok(encode({ version: 1, config: nothing }).config)
})
