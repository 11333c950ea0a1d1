import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AddressTableLookup, ParsedTransaction } from '../../solana/transaction/types.ts'
import { createLookupTables, parseLookupTable } from './lookup-tables.ts'

const keyOf = (n: number): Uint8Array => new Uint8Array(32).fill(n)

function tableOf(addresses: number): Uint8Array {
  const data = new Uint8Array(56 + 32 * addresses)
  data[0] = 1
  for (let i = 0; i < addresses; i++) data.fill(i, 56 + 32 * i, 56 + 32 * (i + 1))
  return data
}

function transactionOf(...lookups: [table: number, writable: number[], readonly: number[]][]): ParsedTransaction {
  const addressTableLookups = lookups.map(
    ([table, writable, readonly]): AddressTableLookup => ({
      accountKey: keyOf(table),
      writableIndexes: Uint8Array.from(writable),
      readonlyIndexes: Uint8Array.from(readonly),
    }),
  )
  return { addressTableLookups } as unknown as ParsedTransaction
}

test('addresses are loaded in the order of the runtime: writable of all tables, then readonly', () => {
  const tables = createLookupTables({ tablesMax: 4 })
  const transaction = transactionOf([1, [3, 1], [0]], [2, [5], [6, 7]])
  assert.deepEqual(tables.resolve(transaction), { ok: false, unknownTables: [keyOf(1), keyOf(2)] })
  assert.deepEqual(tables.takeChanges(10), { wanted: [keyOf(1), keyOf(2)], dropped: [] })
  for (const table of [1, 2]) tables.update({ key: keyOf(table), data: tableOf(8), slot: 5 })
  assert.deepEqual(tables.resolve(transaction), {
    ok: true,
    writable: [3, 1, 5].map(keyOf),
    readonly: [0, 6, 7].map(keyOf),
  })
  assert.deepEqual(tables.takeChanges(10), { wanted: [], dropped: [] })
})

test('a table that is too short for an index is unknown until its extension arrives, and older content changes nothing', () => {
  const tables = createLookupTables({ tablesMax: 4 })
  const transaction = transactionOf([1, [2], []])
  tables.resolve(transaction)
  tables.update({ key: keyOf(1), data: tableOf(2), slot: 5 })
  assert.equal(tables.resolve(transaction).ok, false)
  tables.update({ key: keyOf(1), data: tableOf(3), slot: 7 })
  assert.equal(tables.resolve(transaction).ok, true)
  tables.update({ key: keyOf(1), data: tableOf(2), slot: 6 })
  assert.equal(tables.resolve(transaction).ok, true)
  tables.update({ key: keyOf(1), data: undefined, slot: 8 })
  assert.equal(tables.resolve(transaction).ok, false, 'it was closed')
})

test('of two contents of one slot the longer one stays, whichever comes last: a response may be older than a change in its slot', () => {
  const tables = createLookupTables({ tablesMax: 4 })
  const transaction = transactionOf([1, [2], []])
  tables.resolve(transaction)
  tables.update({ key: keyOf(1), data: tableOf(2), slot: 5 })
  tables.update({ key: keyOf(1), data: tableOf(3), slot: 5 })
  assert.equal(tables.resolve(transaction).ok, true, 'it was extended twice in the slot')
  tables.update({ key: keyOf(1), data: tableOf(2), slot: 5 })
  assert.equal(tables.resolve(transaction).ok, true)
  tables.update({ key: keyOf(1), data: undefined, slot: 5 })
  assert.equal(tables.resolve(transaction).ok, true, 'it was created in the slot')
  tables.update({ key: keyOf(1), data: undefined, slot: 6 })
  assert.equal(tables.resolve(transaction).ok, false)
})

test('the memory of an account and of its key may be used again after they were given', () => {
  const tables = createLookupTables({ tablesMax: 4 })
  const transaction = transactionOf([1, [1], []])
  tables.resolve(transaction)
  const [{ accountKey }] = transaction.addressTableLookups as [AddressTableLookup]
  accountKey.fill(9)
  assert.deepEqual(tables.takeChanges(10).wanted, [keyOf(1)])
  const data = tableOf(2)
  tables.update({ key: keyOf(1), data, slot: 5 })
  data.fill(9)
  assert.deepEqual(tables.resolve(transactionOf([1, [1], []])), { ok: true, writable: [keyOf(1)], readonly: [] })
})

test('at tablesMax the table used least recently is dropped; one that was not requested yet is not requested any more', () => {
  const tables = createLookupTables({ tablesMax: 2 })
  for (const table of [1, 2]) tables.resolve(transactionOf([table, [0], []]))
  assert.deepEqual(tables.takeChanges(1), { wanted: [keyOf(1)], dropped: [] })
  tables.resolve(transactionOf([1, [0], []]))
  tables.resolve(transactionOf([3, [0], []]))
  tables.resolve(transactionOf([4, [0], []]))
  assert.equal(tables.size, 2)
  assert.deepEqual(tables.takeChanges(10), { wanted: [keyOf(3), keyOf(4)], dropped: [keyOf(1)] })
  tables.update({ key: keyOf(1), data: tableOf(1), slot: 9 })
  assert.equal(tables.size, 2, 'a late response brings no table back')
  tables.resolve(transactionOf([3, [0], []]))
  tables.resolve(transactionOf([5, [0], []]))
  assert.deepEqual(tables.takeChanges(10), { wanted: [keyOf(5)], dropped: [keyOf(4)] }, '3 was used after 4')
  assert.deepEqual(tables.takeChanges(10), { wanted: [], dropped: [] })
})

test('an account that is no lookup table is not read as one', () => {
  assert.equal(parseLookupTable(tableOf(0))?.length, 0)
  assert.equal(parseLookupTable(tableOf(256))?.length, 256 * 32)
  assert.equal(parseLookupTable(tableOf(257)), undefined)
  assert.equal(parseLookupTable(tableOf(2).subarray(0, 56 + 33)), undefined)
  for (const length of [55, 24, 3, 0]) assert.equal(parseLookupTable(tableOf(2).subarray(0, length)), undefined)
  assert.equal(parseLookupTable(new Uint8Array(120)), undefined)
})
