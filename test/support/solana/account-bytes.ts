import { Buffer } from 'node:buffer'
import { SYSTEM_PROGRAM } from '../../../src/localnet/chain/addresses.ts'
import type { Account } from '../../../src/localnet/chain/model.ts'
import { type AccountEncodingOptions, encodeAccount } from '../../../src/localnet/rpc/encode-account.ts'
import { writeJson } from '../../../src/localnet/rpc/json.ts'
import { encodeBase58 } from '../../../src/solana/crypto/base58.ts'

export const account = (data: Uint8Array, owner: string = SYSTEM_PROGRAM): Account => ({
  lamports: 5_000_000n,
  owner,
  data,
  executable: false,
  rentEpoch: 18446744073709551615n,
})
export const encode = (of: Account, options: Partial<AccountEncodingOptions>, address = KEY_A) =>
  JSON.parse(writeJson(encodeAccount(address, of, { encoding: 'base64', readAccount: () => null, ...options }))) as {
    data: unknown
    space: number
  }
/** `parsed` of encoding jsonParsed. */
export const parsed = (
  data: Uint8Array,
  owner: string,
  options: Partial<AccountEncodingOptions> = {},
  address = KEY_A,
) => {
  const { data: shown } = encode(account(data, owner), { encoding: 'jsonParsed', ...options }, address)
  return (shown as { parsed?: unknown }).parsed ?? shown
}

export const key = (fill: number) => new Uint8Array(32).fill(fill)
export const KEY_A = encodeBase58(key(1))
export const KEY_B = encodeBase58(key(2))
export const NONE = encodeBase58(key(0))
export const u64 = (value: number | bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)))
  return bytes
}
export const u32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
export const u16 = (value: number) => {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16LE(value)
  return bytes
}
export const f64 = (value: number) => {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return bytes
}
export const bytes = (...parts: (Uint8Array | number)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : part)))
