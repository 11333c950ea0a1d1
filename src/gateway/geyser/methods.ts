import type { Limits } from '../../contract/limits.ts'
import { GEYSER_UNARY } from '../../contract/rpc-methods.ts'

/** The largest message a node accepts by default: `max_decoding_message_size` of Yellowstone's plugin. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024
/** Room for many block hashes and commitments. */
const UNARY_BYTES_MAX = 4096
/** Filters with their names and settings: 64 bytes for each of the 4096 allowed. */
const FILTERS_BYTES = 256 * 1024
/** An address in base58 has at most 44 bytes, after two of tag and length. */
const ACCOUNT_BYTES = 64

/** Limit of one request message, compressed and inflated: enough for the accounts the plan allows. */
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

/** Methods that are served from shreds where the product is offered: of geyser.Geyser, and of shredstream.ShredstreamProxy. */
const DECODED = ['SubscribeDeshred', 'SubscribeEntries'] as const
export type DecodedMethod = (typeof DECODED)[number]

export function isDecodedMethod(method: string): method is DecodedMethod {
  return (DECODED as readonly string[]).includes(method)
}

const UNARY: ReadonlySet<string> = new Set(GEYSER_UNARY)
