import type { Limits } from '../../contract/limits.ts'

/** Methods of geyser.Geyser with one request and one answer. Everything else may be a stream, so it needs a seat. */
const GEYSER_UNARY = [
  'SubscribeReplayInfo',
  'Ping',
  'GetLatestBlockhash',
  'GetBlockHeight',
  'GetSlot',
  'IsBlockhashValid',
  'GetVersion',
] as const

/** Every method with a name of its own in metrics; one that is not here is forwarded all the same. */
export const GEYSER_METHODS = [...GEYSER_UNARY, 'Subscribe', 'SubscribeDeshred', 'SubscribeGossip'] as const

/** The largest message a node takes by default (bundle.md section 9). */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024
/** A block hash and a commitment fit many times. */
const UNARY_BYTES_MAX = 4096
/** Filters with their names and settings: 64 bytes for each of as many as are allowed. */
const FILTERS_BYTES = 256 * 1024
/** An address in base58 has 44 bytes at most, and two before it. */
const ACCOUNT_BYTES = 64

/** Bytes of one request message of a method, as it arrives and inflated: what the plan allows it to name. */
export function requestBytesMax(
  method: string,
  { grpcAccountsPerStream }: Pick<Limits, 'grpcAccountsPerStream'>,
): number {
  if (UNARY.has(method)) return UNARY_BYTES_MAX
  if (grpcAccountsPerStream === null) return MESSAGE_BYTES_MAX
  return Math.min(FILTERS_BYTES + grpcAccountsPerStream * ACCOUNT_BYTES, MESSAGE_BYTES_MAX)
}

export function isUnary(method: string): boolean {
  return UNARY.has(method)
}

const UNARY: ReadonlySet<string> = new Set(GEYSER_UNARY)
