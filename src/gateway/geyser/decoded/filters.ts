import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../../../solana/crypto/base58.ts'
import type { SubscribeDeshredRequest } from '../../../solana/gen/geyser_pb.ts'
import { encodeFilterName } from '../../../solana/geyser/update-envelope.ts'

/** One filter of `deshred_transactions`. Accounts are texts of `keyText`. */
export type TransactionFilter = {
  /** As an entry of the field `filters` of an update. */
  readonly name: Uint8Array
  readonly vote: boolean | undefined
  readonly include: ReadonlySet<string>
  readonly required: ReadonlySet<string>
  readonly exclude: ReadonlySet<string>
}

export type SlotFilter = { readonly name: Uint8Array; readonly hasInterslotUpdates: boolean }

export type StreamFilters = {
  readonly transactions: readonly TransactionFilter[]
  readonly slots: readonly SlotFilter[]
}

export type CompiledFilters =
  | { readonly ok: true; readonly filters: StreamFilters }
  /** The sentence names the filter and the account. */
  | { readonly ok: false; readonly message: string }

/** Compiles a request that the policy of the plan has accepted. */
export function compileFilters({ deshredTransactions, slots }: SubscribeDeshredRequest): CompiledFilters {
  const transactions: TransactionFilter[] = []
  for (const [name, filter] of Object.entries(deshredTransactions)) {
    const lists = [filter.accountInclude, filter.accountRequired, filter.accountExclude].map(compileAccounts)
    const invalid = lists.find((list) => typeof list === 'string')
    if (invalid !== undefined)
      return { ok: false, message: `filter refused: deshred_transactions "${shown(name)}" ${invalid}` }
    const [include, required, exclude] = lists as [Set<string>, Set<string>, Set<string>]
    transactions.push({ name: encodeFilterName(name), vote: filter.vote, include, required, exclude })
  }
  const slotFilters = Object.entries(slots).map(([name, { interslotUpdates = false }]) => ({
    name: encodeFilterName(name),
    hasInterslotUpdates: interslotUpdates,
  }))
  return { ok: true, filters: { transactions, slots: slotFilters } }
}

/** The 32 bytes of the account at `at` as a text of 32 characters, which maps and sets compare faster than bytes. */
export function keyText(bytes: Uint8Array, at = 0): string {
  for (let i = 0; i < KEY_BYTES; i++) scratch[i] = bytes[at + i] as number
  return scratch.toString('latin1')
}

const KEY_BYTES = 32
const scratch = Buffer.alloc(KEY_BYTES)

/** The accounts of a list, or what is wrong with one of them. */
function compileAccounts(texts: readonly string[]): Set<string> | string {
  const keys = new Set<string>()
  for (const text of texts) {
    const bytes = decoded(text)
    if (bytes?.length !== KEY_BYTES) return `contains "${shown(text)}", which is not an address of 32 bytes in base58`
    keys.add(keyText(bytes))
  }
  return keys
}

const ADDRESS_CHARACTERS_MAX = 44

function decoded(text: string): Uint8Array | undefined {
  if (text.length > ADDRESS_CHARACTERS_MAX) return undefined
  try {
    return decodeBase58(text)
  } catch {
    return undefined
  }
}

const SHOWN_MAX = 64

function shown(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text
}
