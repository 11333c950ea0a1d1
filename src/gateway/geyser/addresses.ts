import { type Base58Size, isBase58Key, isBase58Signature } from '../../solana/crypto/base58-size.ts'
import { WireReader } from '../../solana/geyser/wire-reader.ts'
import { textAt } from './policy.ts'
import { filterRefusal, type PolicyRefusal, shownText } from './policy-refusal.ts'
import { DESHRED, type FilterKind, SUBSCRIBE } from './request-shape.ts'

const SHAPES = new Map([
  ['Subscribe', SUBSCRIBE],
  ['SubscribeDeshred', DESHRED],
])

/**
 * Refuses an account or signature of a filter that is not one, as a node does: it ends the stream with INVALID_ARGUMENT, and the customer would have
 * paid for it. The request has passed its policy, which bounds it; nothing is decoded.
 */
export function checkAddresses(method: string, request: Uint8Array): PolicyRefusal | undefined {
  const shape = SHAPES.get(method)
  if (shape === undefined) return undefined
  const bytes = Buffer.from(request.buffer, request.byteOffset, request.length)
  const reader = new WireReader(request)
  while (reader.next()) {
    const kind = shape.filters[reader.field]
    const problem = kind && problemOf(kind, reader.inside(), bytes)
    if (problem !== undefined) return filterRefusal('readable', kind?.kind ?? '', problem.name, problem.message)
  }
  return undefined
}

/** One entry of a map of filters: its name is field 1, the filter field 2. */
function problemOf(kind: FilterKind, entry: WireReader, bytes: Buffer): { name: string; message: string } | undefined {
  let name = ''
  let message: string | undefined
  while (entry.next()) {
    if (entry.field === 1) name = textAt(bytes, entry)
    if (entry.field === 2) message = invalidIn(kind, entry.inside(), bytes)
  }
  return message === undefined ? undefined : { name, message }
}

function invalidIn(kind: FilterKind, filter: WireReader, bytes: Buffer): string | undefined {
  while (filter.next()) {
    const rule = ruleOf(kind, filter.field)
    if (rule !== undefined && !rule.isValid(bytes, filter.from, filter.to))
      return `contains "${shownText(textAt(bytes, filter))}", which is not ${rule.expected}`
  }
  return undefined
}

type TextRule = { readonly isValid: Base58Size; readonly expected: string }
const ACCOUNT: TextRule = { isValid: isBase58Key, expected: 'an address of 32 bytes in base58' }
const SIGNATURE: TextRule = { isValid: isBase58Signature, expected: 'a signature of 64 bytes in base58' }

function ruleOf(kind: FilterKind, field: number): TextRule | undefined {
  if (kind.included.includes(field) || kind.excluded.includes(field)) return ACCOUNT
  return field === kind.signature ? SIGNATURE : undefined
}
