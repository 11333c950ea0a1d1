import { decodeBase58 } from '../../../solana/crypto/base58.ts'
import type { CuckooFilter } from '../../../solana/gen/geyser_pb.ts'
import { type AddressSet, createCuckooSet } from './cuckoo.ts'
import { FilterError } from './limits.ts'

const NONE_REJECTED: ReadonlySet<string> = new Set()

/** The validated addresses of a filter. Base58 of a fixed number of bytes is unique, so texts can be compared. */
export function parsePubkeys(texts: readonly string[], rejected: ReadonlySet<string> = NONE_REJECTED): Set<string> {
  for (const text of texts) {
    const bytes = decode(text, 'Invalid Base58 string')
    if (bytes.length !== 32) throw new FilterError('String is the wrong size')
    if (rejected.has(text)) throw new FilterError(`Pubkey ${text} in filters is not allowed`)
  }
  return new Set(texts)
}

export function parseSignature(text: string): string {
  const bytes = decode(text, 'failed to decode string to signature')
  if (bytes.length !== 64) throw new FilterError('string decoded to wrong size for signature')
  return text
}

function decode(text: string, problem: string): Uint8Array {
  try {
    return decodeBase58(text)
  } catch {
    throw new FilterError(problem)
  }
}

/** The union of a list of addresses and a cuckoo filter, each optional. Undefined when both are absent. */
export function joinAddresses(
  listed: ReadonlySet<string>,
  cuckoo: CuckooFilter | undefined,
  cuckooBytesMax: number,
): (AddressSet & { readonly listed: ReadonlySet<string>; readonly isListOnly: boolean }) | undefined {
  if (!cuckoo) return listed.size > 0 ? { has: (key) => listed.has(key), listed, isListOnly: true } : undefined
  const set = createCuckooSet(cuckoo, cuckooBytesMax)
  return { has: (key) => listed.has(key) || set.has(key), listed, isListOnly: false }
}
