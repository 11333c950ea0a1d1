import assert from 'node:assert/strict'
import { encodeTransactionUpdate } from '../../../src/gateway/geyser/decoded/encode.ts'
import { WireReader } from '../../../src/solana/geyser/wire-reader.ts'
import { parseTransaction } from '../../../src/solana/transaction/transaction.ts'

/** SubscribeUpdateDeshred with a transaction, as a node sends it. */
export function deshredUpdate(
  place: { readonly slot: number; readonly startIndex: number; readonly endIndex: number },
  wire: Uint8Array,
): Uint8Array {
  const parse = parseTransaction(wire)
  assert.ok(parse.ok)
  const update = encodeTransactionUpdate(
    { ...place, entries: undefined, transactions: [], arrivalNanos: 0 },
    { parsed: parse.transaction, isVote: false, loadedWritable: [], loadedReadonly: [], hasUnknownTable: false },
    0,
  )
  return Uint8Array.from(update)
}

/** The SubscribeUpdateDeshredTransaction of it, and the first signature. */
export function deshredTransaction(
  place: Parameters<typeof deshredUpdate>[0],
  wire: Uint8Array,
): { readonly update: Uint8Array; readonly signature: Uint8Array; readonly hasUnknownTable: boolean } {
  const message = deshredUpdate(place, wire)
  const reader = new WireReader(message)
  while (reader.next() && reader.field !== 2);
  const parse = parseTransaction(wire)
  assert.ok(parse.ok)
  return {
    update: Uint8Array.from(message.subarray(reader.from, reader.to)),
    signature: parse.transaction.signatures[0] as Uint8Array,
    hasUnknownTable: parse.transaction.addressTableLookups.length > 0,
  }
}
