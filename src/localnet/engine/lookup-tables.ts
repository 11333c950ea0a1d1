import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { AddressTableLookup } from '../../solana/transaction/types.ts'
import { LOOKUP_TABLE_PROGRAM } from '../chain/addresses.ts'
import type { EngineAccount } from './protocol.ts'

export type LookupError =
  | 'AddressLookupTableNotFound'
  | 'InvalidAddressLookupTableOwner'
  | 'InvalidAddressLookupTableData'
  | 'InvalidAddressLookupTableIndex'

export type LoadedAddresses = { readonly writable: Uint8Array[]; readonly readonly: Uint8Array[] }

/** Layout of the address lookup table program: meta of 56 bytes, then addresses of 32. */
const META_BYTES = 56
const ACTIVE = 0xffffffffffffffffn
/** A deactivated table stays usable while its slot is among the slot hashes. */
const COOLDOWN_SLOTS = 512

/** Resolves lookups as a bank does in slot `slot`; addresses added in this slot are not usable yet. */
export function resolveLookups(
  lookups: readonly AddressTableLookup[],
  read: (address: Uint8Array) => EngineAccount | null,
  slot: number,
): ({ readonly ok: true } & LoadedAddresses) | { readonly ok: false; readonly err: LookupError } {
  const refuse = (err: LookupError) => ({ ok: false, err }) as const
  const writable: Uint8Array[] = []
  const readonly: Uint8Array[] = []
  for (const lookup of lookups) {
    const table = read(lookup.accountKey)
    if (!table) return refuse('AddressLookupTableNotFound')
    if (encodeBase58(table.owner) !== LOOKUP_TABLE_PROGRAM) return refuse('InvalidAddressLookupTableOwner')
    const usable = usableAddresses(table.data, slot)
    if (!(usable instanceof Uint8Array)) return refuse(usable)
    const at = (index: number) => usable.subarray(index * 32, index * 32 + 32)
    for (const index of lookup.writableIndexes) writable.push(at(index))
    for (const index of lookup.readonlyIndexes) readonly.push(at(index))
    if ([...lookup.writableIndexes, ...lookup.readonlyIndexes].some((index) => (index + 1) * 32 > usable.length)) {
      return refuse('InvalidAddressLookupTableIndex')
    }
  }
  return { ok: true, writable, readonly }
}

function usableAddresses(data: Uint8Array, slot: number): Uint8Array | LookupError {
  if (data.length < META_BYTES || (data.length - META_BYTES) % 32 !== 0) return 'InvalidAddressLookupTableData'
  const view = new DataView(data.buffer, data.byteOffset, data.length)
  if (view.getUint32(0, true) !== 1) return 'InvalidAddressLookupTableData'
  const deactivation = view.getBigUint64(4, true)
  if (deactivation !== ACTIVE && deactivation + BigInt(COOLDOWN_SLOTS) < BigInt(slot))
    return 'AddressLookupTableNotFound'
  const addresses = data.subarray(META_BYTES)
  const extendedNow = view.getBigUint64(12, true) === BigInt(slot)
  return extendedNow ? addresses.subarray(0, view.getUint8(20) * 32) : addresses
}
