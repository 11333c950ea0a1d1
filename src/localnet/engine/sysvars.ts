import { SYSVAR_OWNER } from '../chain/addresses.ts'
import type { Account } from '../chain/model.ts'

/** Encodings of the sysvars that change with every slot (bincode: integers little endian, lengths u64). */

export type ClockValues = {
  readonly slot: number
  readonly epochStartTimestamp: number
  readonly epoch: number
  readonly unixTimestamp: number
}

export type SlotHash = { readonly slot: number; readonly hash: Uint8Array }

/** MAX_ENTRIES of `slot-hashes`, and the fixed account size that follows. */
export const SLOT_HASHES_MAX = 512
const SLOT_HASHES_BYTES = 8 + SLOT_HASHES_MAX * 40
/** MAX_ENTRIES of `sysvar::recent_blockhashes`. */
export const RECENT_BLOCKHASHES_MAX = 150
const RECENT_BLOCKHASHES_BYTES = 8 + RECENT_BLOCKHASHES_MAX * 40
const LAMPORTS_PER_SIGNATURE = 5000n
/** MAX_ENTRIES of `slot-history`: a bit vector of 1024 * 1024 slots. */
const SLOT_HISTORY_BITS = 1024 * 1024
export const SLOT_HISTORY_BYTES = 1 + 8 + SLOT_HISTORY_BITS / 8 + 8 + 8

/** A sysvar account holds the rent-exempt minimum of its size, as in Agave's bank. */
export function sysvarAccount(data: Uint8Array): Account {
  return {
    lamports: minimumBalance(data.length),
    owner: SYSVAR_OWNER,
    data,
    executable: false,
    rentEpoch: RENT_EXEMPT_EPOCH,
  }
}

/** The same, with data encoded on first access: several large sysvars change with every slot, and most are never read. */
function lazySysvarAccount(bytes: number, encode: () => Uint8Array): Account {
  return {
    lamports: minimumBalance(bytes),
    owner: SYSVAR_OWNER,
    get data() {
      return encode()
    },
    executable: false,
    rentEpoch: RENT_EXEMPT_EPOCH,
  }
}

export function slotHistoryAccount(newestSlot: number): Account {
  return lazySysvarAccount(SLOT_HISTORY_BYTES, () => encodeSlotHistory(newestSlot))
}

export function slotHashesAccount(read: () => readonly SlotHash[]): Account {
  return lazySysvarAccount(SLOT_HASHES_BYTES, () => encodeSlotHashes(read()))
}

export function recentBlockhashesAccount(read: () => readonly Uint8Array[]): Account {
  return lazySysvarAccount(RECENT_BLOCKHASHES_BYTES, () => encodeRecentBlockhashes(read()))
}

/** The rent epoch of rent-exempt accounts: u64::MAX. */
export const RENT_EXEMPT_EPOCH = 18446744073709551615n
/** ACCOUNT_STORAGE_OVERHEAD bytes are charged beside the data; the rate is lamports per byte with the two years folded in (SIMD-0194). */
const ACCOUNT_OVERHEAD_BYTES = 128
const LAMPORTS_PER_BYTE = 6960n

export function minimumBalance(dataBytes: number): bigint {
  return BigInt(ACCOUNT_OVERHEAD_BYTES + dataBytes) * LAMPORTS_PER_BYTE
}

export function encodeClock(clock: ClockValues): Uint8Array {
  const data = new Uint8Array(40)
  const view = new DataView(data.buffer)
  view.setBigUint64(0, BigInt(clock.slot), true)
  view.setBigInt64(8, BigInt(clock.epochStartTimestamp), true)
  view.setBigUint64(16, BigInt(clock.epoch), true)
  view.setBigUint64(24, BigInt(clock.epoch + 1), true)
  view.setBigInt64(32, BigInt(clock.unixTimestamp), true)
  return data
}

/** No warm-up: every epoch has the full length, beginning with slot 0. */
export function encodeEpochSchedule(slotsPerEpoch: number): Uint8Array {
  const data = new Uint8Array(33)
  const view = new DataView(data.buffer)
  view.setBigUint64(0, BigInt(slotsPerEpoch), true)
  view.setBigUint64(8, BigInt(slotsPerEpoch), true)
  return data
}

/** Newest first. The account size is always that of 512 entries. */
export function encodeSlotHashes(hashes: readonly SlotHash[]): Uint8Array {
  const count = Math.min(hashes.length, SLOT_HASHES_MAX)
  const data = new Uint8Array(SLOT_HASHES_BYTES)
  const view = new DataView(data.buffer)
  view.setBigUint64(0, BigInt(count), true)
  for (let i = 0; i < count; i++) {
    const { slot, hash } = hashes[i] as SlotHash
    view.setBigUint64(8 + i * 40, BigInt(slot), true)
    data.set(hash, 16 + i * 40)
  }
  return data
}

/** Newest first, each with the fee rate of its block. */
export function encodeRecentBlockhashes(hashes: readonly Uint8Array[]): Uint8Array {
  const count = Math.min(hashes.length, RECENT_BLOCKHASHES_MAX)
  // The account size is that of the maximum number of entries (`RecentBlockhashes::size_of`).
  const data = new Uint8Array(RECENT_BLOCKHASHES_BYTES)
  const view = new DataView(data.buffer)
  view.setBigUint64(0, BigInt(count), true)
  for (let i = 0; i < count; i++) {
    data.set(hashes[i] as Uint8Array, 8 + i * 40)
    view.setBigUint64(8 + i * 40 + 32, LAMPORTS_PER_SIGNATURE, true)
  }
  return data
}

/**
 * Every slot since 0 has a block on this chain, so the bit vector is determined by the newest slot.
 * Bincode of a BitVec: option tag, number of u64 words, words, number of bits; then the next slot.
 */
export function encodeSlotHistory(newestSlot: number): Uint8Array {
  return writeSlotHistory(new Uint8Array(SLOT_HISTORY_BYTES), newestSlot)
}

/** The same into `data`, which may hold the encoding of an earlier slot: the bits up to that slot are already set. */
export function writeSlotHistory(data: Uint8Array, newestSlot: number): Uint8Array {
  const view = new DataView(data.buffer, data.byteOffset, data.length)
  data[0] = 1
  view.setBigUint64(1, BigInt(SLOT_HISTORY_BITS / 64), true)
  const oldest = Math.max(0, newestSlot - SLOT_HISTORY_BITS + 1)
  setBits(data.subarray(9, 9 + SLOT_HISTORY_BITS / 8), oldest, newestSlot)
  view.setBigUint64(9 + SLOT_HISTORY_BITS / 8, BigInt(SLOT_HISTORY_BITS), true)
  view.setBigUint64(17 + SLOT_HISTORY_BITS / 8, BigInt(newestSlot + 1), true)
  return data
}

function setBits(bits: Uint8Array, first: number, last: number): void {
  let slot = first
  while (slot <= last) {
    const bit = slot % SLOT_HISTORY_BITS
    if (bit % 8 === 0 && slot + 7 <= last) {
      const bytes = Math.min(Math.floor((last - slot + 1) / 8), (SLOT_HISTORY_BITS - bit) / 8)
      bits.fill(0xff, bit / 8, bit / 8 + bytes)
      slot += bytes * 8
    } else {
      bits[bit >> 3] = (bits[bit >> 3] as number) | (1 << (bit & 7))
      slot++
    }
  }
}
