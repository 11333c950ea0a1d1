import type { EngineAccount } from '../engine/protocol.ts'

/**
 * Many accounts in one byte array, for messages to the engine and for the snapshot: serializing a hundred thousand
 * objects would take seconds. Per account: address 32, owner 32, lamports u64, executable u8, data length u32, data;
 * integers little endian. An account that does not exist has zero lamports and no data.
 */
const HEADER_BYTES = 32 + 32 + 8 + 1 + 4

export type AddressedAccount = readonly [address: Uint8Array, account: EngineAccount | null]

export function packAccounts(accounts: readonly AddressedAccount[]): Uint8Array {
  const bytes = new Uint8Array(
    accounts.reduce((sum, [, account]) => sum + HEADER_BYTES + (account?.data.length ?? 0), 0),
  )
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const [address, account] of accounts) {
    bytes.set(address, at)
    if (account) {
      bytes.set(account.owner, at + 32)
      view.setBigUint64(at + 64, account.lamports, true)
      view.setUint8(at + 72, account.executable ? 1 : 0)
      view.setUint32(at + 73, account.data.length, true)
      bytes.set(account.data, at + HEADER_BYTES)
    }
    at += HEADER_BYTES + (account?.data.length ?? 0)
  }
  return bytes
}

/** The arrays are views into `bytes`. */
export function* unpackAccounts(bytes: Uint8Array): Generator<AddressedAccount> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 0
  while (at < bytes.length) {
    const lamports = view.getBigUint64(at + 64, true)
    const end = at + HEADER_BYTES + view.getUint32(at + 73, true)
    const account: EngineAccount = {
      lamports,
      owner: bytes.subarray(at + 32, at + 64),
      data: bytes.subarray(at + HEADER_BYTES, end),
      executable: view.getUint8(at + 72) === 1,
    }
    yield [bytes.subarray(at, at + 32), lamports === 0n ? null : account]
    at = end
  }
}
