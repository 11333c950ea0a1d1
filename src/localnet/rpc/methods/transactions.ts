import type { TimeSlices } from '../../../platform/process/time-slices.ts'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { parseTransaction } from '../../../solana/transaction/transaction.ts'
import type { Chain, TransactionRecord } from '../../chain/model.ts'
import { blockHeightAt, openBank, type RpcMethods, withContext } from '../context.ts'
import { encodeError, encodeStatus } from '../encode-meta.ts'
import { encodeTransaction } from '../encode-transaction.ts'
import { invalidParams, unsupportedVersion } from '../errors.ts'
import type { Json } from '../json.ts'
import { listOf, readArguments, string } from '../params.ts'
import { parsable, readUtf8 } from '../parsed/byte-reader.ts'
import { MEMO_PROGRAMS } from '../parsed/instructions.ts'
import * as shape from '../request-shapes.ts'
import { atLeastConfirmed, rootedSlot } from './blocks.ts'

const SIGNATURE_STATUSES_MAX = 256
const SIGNATURES_FOR_ADDRESS_MAX = 1000n
/** Finalized slots in Agave's status cache (MAX_CACHE_ENTRIES); older ones need `searchTransactionHistory`. */
const STATUS_CACHE_SLOTS = 300

export const transactionMethods: RpcMethods = {
  getSignatureStatuses({ chain }, params) {
    const [signatures, config] = readArguments(params, [listOf(string)], [shape.signatureStatusConfig])
    if (signatures.length > SIGNATURE_STATUSES_MAX)
      throw invalidParams(`Too many inputs provided; max ${SIGNATURE_STATUSES_MAX}`)
    signatures.forEach(shape.checkSignature)
    const { slot } = openBank(chain, { commitment: 'processed' })
    const oldest = config?.searchTransactionHistory ? 0 : chain.slot('finalized') - STATUS_CACHE_SLOTS
    const statuses = signatures.map((signature) => {
      const record = chain.transaction(signature)
      return record && record.slot <= slot && record.slot >= oldest ? encodeTransactionStatus(chain, record) : null
    })
    return withContext(slot, statuses)
  },

  async getSignaturesForAddress({ chain, createSlices }, params) {
    const [text, config] = readArguments(params, [string], [shape.signaturesForAddressConfig])
    const address = shape.checkAddress(text)
    const before = config?.before === undefined ? undefined : shape.checkSignature(config.before)
    const until = config?.until === undefined ? undefined : shape.checkSignature(config.until)
    const limit = config?.limit ?? SIGNATURES_FOR_ADDRESS_MAX
    if (limit === 0n || limit > SIGNATURES_FOR_ADDRESS_MAX)
      throw invalidParams(`Invalid limit; max ${SIGNATURES_FOR_ADDRESS_MAX}`)
    const top = rootedSlot(chain, config ?? {})
    const value = await pageSignatures(chain, { address, before, until, limit: Number(limit), top }, createSlices())
    return config?.withContext ? withContext(top, value) : value
  },

  getTransaction({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.transactionConfig])
    const signature = shape.checkSignature(text)
    const top = chain.slot(atLeastConfirmed(config?.commitment))
    const record = chain.transaction(signature)
    const value = record && record.slot <= top ? encodeRecord(chain, record, config ?? {}) : null
    return config?.withContext ? withContext(top, value) : value
  },
}

function encodeRecord(
  chain: Chain,
  record: TransactionRecord,
  config: NonNullable<ReturnType<typeof shape.transactionConfig>> | Record<string, never>,
): Json {
  const encoded = encodeTransaction(record, {
    encoding: config.encoding ?? 'json',
    maxSupportedVersion: config.maxSupportedTransactionVersion,
    showRewards: true,
  })
  if (!encoded.ok) throw unsupportedVersion(encoded.unsupportedVersion)
  return { slot: record.slot, ...encoded.value, blockTime: timeOf(chain, record), transactionIndex: record.index }
}

function encodeTransactionStatus(chain: Chain, record: TransactionRecord): Json {
  const confirmationStatus = confirmationStatusOf(chain, record)
  const head = blockHeightAt(chain, chain.slot('processed'))
  return {
    slot: record.slot,
    confirmations: confirmationStatus === 'finalized' ? null : head - blockHeightAt(chain, record.slot),
    status: encodeStatus(record.meta.err),
    err: encodeError(record.meta.err),
    confirmationStatus,
  }
}

function confirmationStatusOf(chain: Chain, { slot }: TransactionRecord): 'processed' | 'confirmed' | 'finalized' {
  if (slot <= chain.slot('finalized')) return 'finalized'
  return slot <= chain.slot('confirmed') ? 'confirmed' : 'processed'
}

type Page = { address: string; before: string | undefined; until: string | undefined; limit: number; top: number }

/**
 * Newest first, from just before `before` down to just after `until`; a transaction above `top` is unknown. An unknown `before` gives an
 * empty page, an unknown `until` does not end it. In slices: old blocks are unpacked.
 */
async function pageSignatures(
  chain: Chain,
  { address, before, until, limit, top }: Page,
  slices: TimeSlices,
): Promise<Json[]> {
  const known = (signature: string | undefined) => {
    const record = signature === undefined ? undefined : chain.transaction(signature)
    return record && record.slot <= top ? record : undefined
  }
  const first = known(before)
  if (before !== undefined && !first) return []
  const last = known(until)
  const page: Json[] = []
  for (const record of chain.signaturesOf(address, first ?? { slot: top + 1, index: 0 })) {
    if (last && !isOlder(last, record)) break
    page.push(encodeSignature(chain, record))
    if (page.length >= limit) break
    if (slices.isSpent()) await slices.yield()
  }
  return page
}

function isOlder(a: TransactionRecord, b: TransactionRecord): boolean {
  return a.slot < b.slot || (a.slot === b.slot && a.index < b.index)
}

function encodeSignature(chain: Chain, record: TransactionRecord): Json {
  return {
    signature: record.signature,
    slot: record.slot,
    err: encodeError(record.meta.err),
    memo: describeMemos(record.wire),
    blockTime: timeOf(chain, record),
    confirmationStatus: confirmationStatusOf(chain, record),
    transactionIndex: record.index,
  }
}

function timeOf(chain: Chain, { slot }: TransactionRecord): number | null {
  return chain.block(slot)?.time ?? null
}

/** Memos of the top-level instructions in the form of getSignaturesForAddress: `[byteLength] text`, joined by `; `. */
function describeMemos(wire: Uint8Array): string | null {
  const parsed = parseTransaction(wire)
  if (!parsed.ok) return null
  const { staticKeys, instructions } = parsed.transaction
  const memos: string[] = []
  for (const { programIdIndex, data } of instructions) {
    const program = staticKeys[programIdIndex]
    if (!program || !MEMO_PROGRAMS.has(encodeBase58(program))) continue
    memos.push(`[${data.length}] ${parsable(() => readUtf8(data)) ?? '(unparseable)'}`)
  }
  return memos.length === 0 ? null : memos.join('; ')
}
