import assert from 'node:assert/strict'
import type { ParsedTransaction } from '../../../src/solana/transaction/transaction.ts'

/** Encodes a parsed transaction without the code of the parser or the builder. */
export function encodeParsedTransaction(transaction: ParsedTransaction): Uint8Array {
  const { header, staticKeys, recentBlockhash, instructions, signatures, config, version } = transaction
  const compact = (n: number): number[] => (n < 128 ? [n] : [(n & 127) | 128, ...compact(n >> 7)])
  const u32 = (n: number) => [n & 255, (n >> 8) & 255, (n >> 16) & 255, n >>> 24]
  const head = [header.numRequiredSignatures, header.numReadonlySigned, header.numReadonlyUnsigned]
  const keys = staticKeys.flatMap((key) => [...key])
  const signed = signatures.flatMap((signature) => [...signature])
  if (version === 1) {
    assert.ok(config !== null)
    const fee = config.priorityFeeLamports
    const values = [
      fee === null ? null : Number(fee & 0xffffffffn),
      fee === null ? null : Number(fee >> 32n),
      config.computeUnitLimit,
      config.loadedAccountsDataSizeLimit,
      config.heapSize,
    ]
    const mask = values.reduce<number>((bits, value, i) => (value === null ? bits : bits | (1 << i)), 0)
    return Uint8Array.from([
      0x81,
      ...head,
      ...u32(mask),
      ...recentBlockhash,
      instructions.length,
      staticKeys.length,
      ...keys,
      ...values.flatMap((value) => (value === null ? [] : u32(value))),
      ...instructions.flatMap((i) => [i.programIdIndex, i.accounts.length, i.data.length & 255, i.data.length >> 8]),
      ...instructions.flatMap((i) => [...i.accounts, ...i.data]),
      ...signed,
    ])
  }
  return Uint8Array.from([
    ...compact(signatures.length),
    ...signed,
    ...(version === 0 ? [0x80] : []),
    ...head,
    ...compact(staticKeys.length),
    ...keys,
    ...recentBlockhash,
    ...compact(instructions.length),
    ...instructions.flatMap((i) => [
      i.programIdIndex,
      ...compact(i.accounts.length),
      ...i.accounts,
      ...compact(i.data.length),
      ...i.data,
    ]),
    ...(version === 0
      ? [
          ...compact(transaction.addressTableLookups.length),
          ...transaction.addressTableLookups.flatMap((lookup) => [
            ...lookup.accountKey,
            ...compact(lookup.writableIndexes.length),
            ...lookup.writableIndexes,
            ...compact(lookup.readonlyIndexes.length),
            ...lookup.readonlyIndexes,
          ]),
        ]
      : []),
  ])
}
