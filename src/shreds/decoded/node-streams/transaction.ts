import { SubscribeUpdateDeshredTransactionSchema } from '../../../solana/gen/geyser_pb.ts'
import type { Message } from '../../../solana/gen/solana-storage_pb.ts'
import { decodeMessage } from '../../../solana/geyser/protobuf.ts'
import {
  ACCOUNT_INDEXES,
  headerFits,
  type ParsedTransaction,
  SIGNATURES_MAX,
} from '../../../solana/transaction/types.ts'
import { SIGNATURE_BYTES } from './records.ts'

/** A transaction as a node's own SubscribeDeshred delivers it. */
export type UpstreamTransaction = {
  readonly slot: number
  readonly startIndex: number
  /** Exclusive. */
  readonly endIndex: number
  readonly parsed: ParsedTransaction
  readonly isVote: boolean
  readonly loadedWritable: readonly Uint8Array[]
  readonly loadedReadonly: readonly Uint8Array[]
  /** Addresses that it loads from lookup tables are missing. */
  readonly hasUnknownTable: boolean
}

const KEY_BYTES = 32

/** Reads a SubscribeUpdateDeshredTransaction; undefined where it is not a transaction. */
export function readUpstreamTransaction(update: Uint8Array): UpstreamTransaction | undefined {
  const decoded = decodeMessage(SubscribeUpdateDeshredTransactionSchema, update)
  const info = decoded?.transaction
  const message = info?.transaction?.message
  if (decoded === undefined || info?.transaction === undefined || message === undefined) return undefined
  const { signatures } = info.transaction
  const slot = Number(decoded.slot)
  const loadedWritable = info.loadedWritableAddresses
  const loadedReadonly = info.loadedReadonlyAddresses
  if (!Number.isSafeInteger(slot) || signatures.length === 0 || signatures.length > SIGNATURES_MAX) return undefined
  if (!signatures.every(({ length }) => length === SIGNATURE_BYTES)) return undefined
  if (![...message.accountKeys, ...loadedWritable, ...loadedReadonly].every(({ length }) => length === KEY_BYTES))
    return undefined
  const parsed = parsedOf(message, signatures)
  if (parsed === undefined) return undefined
  let indexes = 0
  for (const { writableIndexes, readonlyIndexes } of parsed.addressTableLookups)
    indexes += writableIndexes.length + readonlyIndexes.length
  const loaded = loadedWritable.length + loadedReadonly.length
  if (parsed.staticKeys.length + loaded > ACCOUNT_INDEXES) return undefined
  return {
    slot,
    startIndex: info.completedDataSetStartingShredIndex,
    endIndex: info.completedDataSetEndingShredIndexExclusive,
    parsed,
    isVote: info.isVote,
    loadedWritable,
    loadedReadonly,
    hasUnknownTable: loaded < indexes,
  }
}

function parsedOf(message: Message, signatures: readonly Uint8Array[]): ParsedTransaction | undefined {
  const { accountKeys, config } = message
  const header = {
    numRequiredSignatures: message.header?.numRequiredSignatures ?? 0,
    numReadonlySigned: message.header?.numReadonlySignedAccounts ?? 0,
    numReadonlyUnsigned: message.header?.numReadonlyUnsignedAccounts ?? 0,
  }
  if (!headerFits(header, accountKeys.length)) return undefined
  return {
    version: !message.versioned ? 'legacy' : config === undefined ? 0 : 1,
    signatures,
    // The wire form is not known; nothing that is delivered needs it.
    message: new Uint8Array(),
    wireLength: 0,
    header,
    staticKeys: accountKeys,
    recentBlockhash: message.recentBlockhash,
    instructions: message.instructions,
    addressTableLookups: message.addressTableLookups,
    config:
      config === undefined
        ? null
        : {
            priorityFeeLamports: config.priorityFee ?? null,
            computeUnitLimit: config.computeUnitLimit ?? null,
            loadedAccountsDataSizeLimit: config.loadedAccountsDataSizeLimit ?? null,
            heapSize: config.heapSize ?? null,
          },
  }
}
