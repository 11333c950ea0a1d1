import { Buffer } from 'node:buffer'
import { isSigner, isWritableStatic, type ParsedTransaction } from './transaction.ts'
import type { ParsedInstruction } from './types.ts'

export type TipRule = {
  /** Raw public keys. */
  readonly accounts: readonly Uint8Array[]
  readonly minLamports: bigint
}

/** Why no transfer of the transaction counts. When several reasons apply, the first in this order is reported. */
export type TipFault =
  /** A transfer to a tip account is too small; transfers are not added up. */
  | 'below-minimum'
  /** The receiver of the transfer is in a lookup table, which is not resolved here. */
  | 'lookup-table'
  /** The tip account is read-only, so the transfer would fail. */
  | 'read-only'
  /** The paying account does not sign or is read-only, so the transfer would fail. */
  | 'source'
  | 'no-transfer'

export type TipCheck =
  | {
      readonly ok: true
      readonly account: Uint8Array
      readonly lamports: bigint
      /** The index of the paying account. */
      readonly from: number
      /** The index of the transfer instruction. */
      readonly instruction: number
    }
  /** `foundLamports` is the largest valid transfer to a tip account. */
  | { readonly ok: false; readonly fault: TipFault; readonly foundLamports: bigint }

const FAULTS: readonly TipFault[] = ['below-minimum', 'lookup-table', 'read-only', 'source', 'no-transfer']

/** Instructions of the System Program (solana-system-interface, bincode: u32 discriminant, then the fields). */
const TRANSFER = 2
const TRANSFER_WITH_SEED = 11
/** Discriminant and lamports. The runtime allows trailing bytes. */
const TRANSFER_BYTES = 12
/** Discriminant, lamports and the length of the seed; the seed and a key of 32 bytes follow. */
const WITH_SEED_HEAD_BYTES = 20

/**
 * Checks that one top-level transfer of the System Program pays at least the minimum to a tip account among the static keys. Inner
 * instructions, accounts from lookup tables and sums of several transfers do not count. The transaction may still fail on chain.
 */
export function checkTip(transaction: ParsedTransaction, rule: TipRule): TipCheck {
  let nearest = FAULTS.length - 1
  let foundLamports = 0n
  const missed = (fault: TipFault) => {
    nearest = Math.min(nearest, FAULTS.indexOf(fault))
  }
  for (let at = 0; at < transaction.instructions.length; at++) {
    const transfer = transferOf(transaction, at)
    if (transfer === undefined) continue
    const { to, lamports } = transfer
    const receiver = transaction.staticKeys[to]
    if (receiver === undefined) {
      if (lamports >= rule.minLamports) missed('lookup-table')
      continue
    }
    if (!rule.accounts.some((account) => Buffer.compare(account, receiver) === 0)) continue
    if (!isWritableStatic(transaction, to)) missed('read-only')
    else if (!transfer.canPay) missed('source')
    else if (lamports >= rule.minLamports) {
      return { ok: true, account: receiver, lamports, from: transfer.from, instruction: at }
    } else {
      missed('below-minimum')
      if (lamports > foundLamports) foundLamports = lamports
    }
  }
  return { ok: false, fault: FAULTS[nearest] as TipFault, foundLamports }
}

type Transfer = {
  readonly from: number
  readonly to: number
  readonly lamports: bigint
  readonly canPay: boolean
}

/** Undefined where the instruction is none. Most are none, and the first bytes of their data show it. */
function transferOf(transaction: ParsedTransaction, instruction: number): Transfer | undefined {
  const { programIdIndex, accounts, data } = transaction.instructions[instruction] as ParsedInstruction
  if (data.length < TRANSFER_BYTES) return undefined
  const kind = kindOf(data)
  const isTransfer = kind === TRANSFER && accounts.length >= 2
  const isWithSeed = kind === TRANSFER_WITH_SEED && accounts.length >= 3
  if (!(isTransfer || isWithSeed) || !isSystem(transaction, programIdIndex)) return undefined
  const [from = 0, second = 0, third = 0] = accounts
  const lamports = lamportsOf(data)
  const isPayerWritable = isWritable(transaction, from)
  if (isTransfer) return { from, to: second, lamports, canPay: isPayerWritable && isSigner(transaction, from) }
  // The payer is derived from a base key, and the base key signs.
  const canPay = isPayerWritable && isSigner(transaction, second) && isWholeWithSeed(data)
  return { from, to: third, lamports, canPay }
}

function isSystem({ staticKeys }: ParsedTransaction, programIdIndex: number): boolean {
  const key = staticKeys[programIdIndex]
  if (key === undefined) return false
  for (let at = 0; at < key.length; at++) if (key[at] !== 0) return false
  return true
}

/** The discriminant, or -1 where it is none of a byte: those of transfers are. */
function kindOf(data: Uint8Array): number {
  return data[1] === 0 && data[2] === 0 && data[3] === 0 ? (data[0] as number) : -1
}

function lamportsOf(data: Uint8Array): bigint {
  return new DataView(data.buffer, data.byteOffset).getBigUint64(4, true)
}

function isWholeWithSeed(data: Uint8Array): boolean {
  if (data.length < WITH_SEED_HEAD_BYTES) return false
  const seedBytes = new DataView(data.buffer, data.byteOffset).getBigUint64(12, true)
  return BigInt(data.length) >= BigInt(WITH_SEED_HEAD_BYTES + 32) + seedBytes
}

/** For static keys the header decides; of the loaded keys, the writable ones come first. */
function isWritable(transaction: ParsedTransaction, index: number): boolean {
  const loaded = index - transaction.staticKeys.length
  if (loaded < 0) return isWritableStatic(transaction, index)
  return loaded < transaction.addressTableLookups.reduce((sum, lookup) => sum + lookup.writableIndexes.length, 0)
}
