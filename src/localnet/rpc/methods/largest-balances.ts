import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../../../solana/crypto/base58.ts'

const LARGEST_MAX = 20

type Balance = { readonly address: string; readonly amount: bigint }
/** The bytes of the address are decoded at most once, and only to compare equal amounts. */
type Candidate = { readonly balance: Balance; key: Uint8Array | undefined }

/** The 20 largest balances in the order of Agave, whose heap compares amount and address: among equal amounts the greater address is first. */
export function takeLargest(balances: Iterable<Balance>): Balance[] {
  const largest: Candidate[] = []
  for (const balance of balances) {
    const candidate: Candidate = { balance, key: undefined }
    const least = largest[LARGEST_MAX - 1]
    if (least && !isLarger(candidate, least)) continue
    const position = largest.findIndex((other) => isLarger(candidate, other))
    largest.splice(position < 0 ? largest.length : position, 0, candidate)
    largest.length = Math.min(largest.length, LARGEST_MAX)
  }
  return largest.map(({ balance }) => balance)
}

function isLarger(a: Candidate, b: Candidate): boolean {
  if (a.balance.amount !== b.balance.amount) return a.balance.amount > b.balance.amount
  return Buffer.compare(keyOf(a), keyOf(b)) > 0
}

function keyOf(candidate: Candidate): Uint8Array {
  candidate.key ??= decodeBase58(candidate.balance.address)
  return candidate.key
}
