import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../../../solana/crypto/base58.ts'
import { SubscribeRequestFilterSlotsSchema } from '../../../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../../../solana/geyser/protobuf.ts'
import { encodeFilterName } from '../../../solana/geyser/update-envelope.ts'
import { WIRE_BYTES, WIRE_VARINT, WireReader } from '../../../solana/geyser/wire-reader.ts'
import { shownText, TEXT_SHOWN_MAX } from '../policy-refusal.ts'
import type { DeshredRequest, FilterRange } from './request.ts'

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

/** Fields of SubscribeRequestFilterDeshredTransactions (geyser.proto). */
const VOTE = 1
const INCLUDE = 2
const EXCLUDE = 3
const REQUIRED = 4

/** Accounts between two steps, which take well below a millisecond. */
const STEP_ACCOUNTS = 64

/** Compiles the filters of a request, in short steps. */
export function* compileFilters({ message, transactions, slots }: DeshredRequest): Generator<void, CompiledFilters> {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.length)
  const compiled: TransactionFilter[] = []
  for (const [name, range] of transactions) {
    const filter = yield* compileFilter(bytes, range)
    if (typeof filter === 'string')
      return { ok: false, message: `filter refused: deshred_transactions "${shownText(name)}" ${filter}` }
    compiled.push({ name: encodeFilterName(name), ...filter })
    yield
  }
  const slotFilters: SlotFilter[] = []
  for (const [name, { from, to }] of slots) {
    const filter = decodeMessage(SubscribeRequestFilterSlotsSchema, message.subarray(from, to))
    if (filter === undefined) return { ok: false, message: `filter refused: slots "${shownText(name)}" cannot be read` }
    slotFilters.push({ name: encodeFilterName(name), hasInterslotUpdates: filter.interslotUpdates ?? false })
    yield
  }
  return { ok: true, filters: { transactions: compiled, slots: slotFilters } }
}

/** The filter, or what is wrong with it. */
function* compileFilter(
  bytes: Buffer,
  { from, to }: FilterRange,
): Generator<void, Omit<TransactionFilter, 'name'> | string> {
  const lists: Readonly<Record<number, Set<string>>> = {
    [INCLUDE]: new Set(),
    [EXCLUDE]: new Set(),
    [REQUIRED]: new Set(),
  }
  let vote: boolean | undefined
  let accounts = 0
  const reader = new WireReader(bytes, from, to)
  while (reader.next()) {
    if (reader.field === VOTE && reader.wireType === WIRE_VARINT) vote = reader.value !== 0
    const list = lists[reader.field]
    if (list === undefined) continue
    const key = keyAt(bytes, reader)
    if (key === undefined) {
      const text = shownText(bytes.toString('utf8', reader.from, Math.min(reader.to, reader.from + SHOWN_BYTES_MAX)))
      return `contains "${text}", which is not an address of 32 bytes in base58`
    }
    list.add(key)
    if (++accounts % STEP_ACCOUNTS === 0) yield
  }
  if (reader.isBroken) return 'cannot be read'
  const [include, required, exclude] = [lists[INCLUDE], lists[REQUIRED], lists[EXCLUDE]] as [Keys, Keys, Keys]
  return { vote, include, required, exclude }
}

type Keys = ReadonlySet<string>

/** The 32 bytes of the account at `at` as a text of 32 characters, which maps and sets compare faster than bytes. */
export function keyText(bytes: Uint8Array, at = 0): string {
  for (let i = 0; i < KEY_BYTES; i++) scratch[i] = bytes[at + i] as number
  return scratch.toString('latin1')
}

const KEY_BYTES = 32
const scratch = Buffer.alloc(KEY_BYTES)

const ADDRESS_CHARACTERS_MAX = 44

function keyAt(bytes: Buffer, { wireType, from, to }: WireReader): string | undefined {
  if (wireType !== WIRE_BYTES || to - from > ADDRESS_CHARACTERS_MAX) return undefined
  try {
    const key = decodeBase58(bytes.toString('latin1', from, to))
    return key.length === KEY_BYTES ? keyText(key) : undefined
  } catch {
    return undefined
  }
}

/** A character has up to four bytes. */
const SHOWN_BYTES_MAX = 4 * (TEXT_SHOWN_MAX + 1)
