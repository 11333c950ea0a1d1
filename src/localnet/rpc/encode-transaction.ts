import { Buffer } from 'node:buffer'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { isSigner, isWritableStatic } from '../../solana/transaction/transaction.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { UPGRADEABLE_LOADER } from '../chain/addresses.ts'
import type { Block, TransactionMeta, TransactionRecord } from '../chain/model.ts'
import { parseRecorded } from '../chain/transaction-facts.ts'
import { encodeFullMeta, encodeParsedMeta, encodeSimpleMeta } from './encode-meta.ts'
import type { Json } from './json.ts'
import { encodeParsedInstruction } from './parsed/instructions.ts'
import { RESERVED_KEYS } from './parsed/program-ids.ts'

export const TRANSACTION_ENCODINGS = ['binary', 'base64', 'base58', 'json', 'jsonParsed'] as const
export type TransactionEncoding = (typeof TRANSACTION_ENCODINGS)[number]

export const TRANSACTION_DETAILS = ['full', 'signatures', 'none', 'accounts'] as const
export type TransactionDetails = (typeof TRANSACTION_DETAILS)[number]

export type TransactionEncodingOptions = {
  readonly encoding: TransactionEncoding
  /** Undefined for a client that supports only legacy transactions. */
  readonly maxSupportedVersion: number | undefined
  readonly showRewards: boolean
}

export type BlockEncodingOptions = TransactionEncodingOptions & { readonly details: TransactionDetails }

type Members = { readonly [member: string]: Json | undefined }

/** The JSON, or the version of the first transaction that the client does not support (error -32015). */
export type Encoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly unsupportedVersion: number }

/** Top-level instructions have stack height 1, inner ones 2 and above. */
const TOP_STACK_HEIGHT = 1

/** `{transaction, meta, version?}`, as in getTransaction, getBlock and block notifications. */
export function encodeTransaction(record: TransactionRecord, options: TransactionEncodingOptions): Encoded<Members> {
  const transaction = parseRecorded(record)
  const refused = refuseVersion(transaction, options.maxSupportedVersion)
  if (refused) return refused
  const { encoding, showRewards } = options
  const value = {
    transaction: encodeWire(record, transaction, encoding),
    meta:
      encoding === 'jsonParsed'
        ? encodeParsedMeta(record.meta, keysOf(transaction, record.meta), showRewards)
        : encodeFullMeta(record.meta, showRewards),
    version: encodeVersion(transaction, options.maxSupportedVersion),
  }
  return { ok: true, value }
}

/** A block as in getBlock and block notifications. */
export function encodeBlock(block: Block, options: BlockEncodingOptions): Encoded<Members> {
  const transactions: Json[] = []
  if (options.details === 'full' || options.details === 'accounts') {
    for (const record of block.transactions) {
      const encoded = options.details === 'full' ? encodeTransaction(record, options) : encodeAccounts(record, options)
      if (!encoded.ok) return encoded
      transactions.push(encoded.value)
    }
  }
  const value = {
    previousBlockhash: block.previousBlockhash,
    blockhash: block.blockhash,
    parentSlot: block.parentSlot,
    transactions: options.details === 'full' || options.details === 'accounts' ? transactions : undefined,
    signatures: options.details === 'signatures' ? block.transactions.map(({ signature }) => signature) : undefined,
    rewards: options.showRewards ? (block.rewards ?? []).map((reward) => ({ ...reward, commission: null })) : undefined,
    blockTime: block.time,
    blockHeight: block.height,
  }
  return { ok: true, value }
}

/** Detail `accounts`: the account keys without instructions. */
function encodeAccounts(record: TransactionRecord, options: TransactionEncodingOptions): Encoded<Members> {
  const transaction = parseRecorded(record)
  const refused = refuseVersion(transaction, options.maxSupportedVersion)
  if (refused) return refused
  const value = {
    transaction: {
      signatures: signaturesOf(transaction),
      accountKeys: listKeys(transaction, record.meta.loadedAddresses).map(encodeKey),
    },
    meta: encodeSimpleMeta(record.meta, options.showRewards),
    version: encodeVersion(transaction, options.maxSupportedVersion),
  }
  return { ok: true, value }
}

function encodeWire(record: TransactionRecord, transaction: ParsedTransaction, encoding: TransactionEncoding): Json {
  const { wire } = record
  switch (encoding) {
    case 'binary':
      return encodeBase58(wire)
    case 'base58':
      return [encodeBase58(wire), 'base58']
    case 'base64':
      return [Buffer.from(wire.buffer, wire.byteOffset, wire.byteLength).toString('base64'), 'base64']
    case 'json':
      return { signatures: signaturesOf(transaction), message: encodeMessage(transaction) }
    case 'jsonParsed':
      return { signatures: signaturesOf(transaction), message: encodeParsedMessage(transaction, record.meta) }
  }
}

function encodeMessage(transaction: ParsedTransaction): Json {
  const { header } = transaction
  return {
    header: {
      numRequiredSignatures: header.numRequiredSignatures,
      numReadonlySignedAccounts: header.numReadonlySigned,
      numReadonlyUnsignedAccounts: header.numReadonlyUnsigned,
    },
    accountKeys: transaction.staticKeys.map(encodeBase58),
    recentBlockhash: encodeBase58(transaction.recentBlockhash),
    instructions: transaction.instructions.map(({ programIdIndex, accounts, data }) => ({
      programIdIndex,
      accounts: Array.from(accounts),
      data: encodeBase58(data),
      stackHeight: TOP_STACK_HEIGHT,
    })),
    ...encodeVersionParts(transaction),
  }
}

function encodeParsedMessage(transaction: ParsedTransaction, meta: TransactionMeta): Json {
  const keys = listKeys(transaction, meta.loadedAddresses)
  const addresses = keys.map(({ address }) => address)
  return {
    accountKeys: keys.map(encodeKey),
    recentBlockhash: encodeBase58(transaction.recentBlockhash),
    instructions: transaction.instructions.map((each) => encodeParsedInstruction(each, addresses, TOP_STACK_HEIGHT)),
    ...encodeVersionParts(transaction),
  }
}

/** Members of one message version: lookups in version 0, the config in version 1. */
function encodeVersionParts({ version, addressTableLookups, config }: ParsedTransaction): Members {
  if (version === 0) {
    const lookups = addressTableLookups.map(({ accountKey, writableIndexes, readonlyIndexes }) => ({
      accountKey: encodeBase58(accountKey),
      writableIndexes: Array.from(writableIndexes),
      readonlyIndexes: Array.from(readonlyIndexes),
    }))
    return { addressTableLookups: lookups }
  }
  if (!config) return {}
  const { priorityFeeLamports, computeUnitLimit, loadedAccountsDataSizeLimit, heapSize } = config
  return {
    transactionConfig: { priorityFee: priorityFeeLamports, computeUnitLimit, loadedAccountsDataSizeLimit, heapSize },
  }
}

function encodeKey({ address, writable, signer, source }: ListedKey): Json {
  return { pubkey: address, writable, signer, source }
}

function signaturesOf(transaction: ParsedTransaction): string[] {
  return transaction.signatures.map(encodeBase58)
}

function keysOf(transaction: ParsedTransaction, { loadedAddresses }: TransactionMeta): string[] {
  return [...transaction.staticKeys.map(encodeBase58), ...loadedAddresses.writable, ...loadedAddresses.readonly]
}

function refuseVersion({ version }: ParsedTransaction, maxSupported: number | undefined): Encoded<never> | undefined {
  if (version === 'legacy' || (maxSupported !== undefined && version <= maxSupported)) return undefined
  return { ok: false, unsupportedVersion: version }
}

function encodeVersion({ version }: ParsedTransaction, maxSupported: number | undefined): Json | undefined {
  return maxSupported === undefined ? undefined : version
}

type ListedKey = {
  readonly address: string
  readonly writable: boolean
  readonly signer: boolean
  readonly source: 'transaction' | 'lookupTable'
}

/**
 * All keys of a transaction in the order instructions index them: static keys, then loaded writable ones, then loaded read-only ones.
 * Writable means write-locked by the runtime: never a reserved key, and a called program only when its loader is also present.
 */
function listKeys(transaction: ParsedTransaction, loaded: TransactionMeta['loadedAddresses']): ListedKey[] {
  const staticKeys = transaction.staticKeys.map(encodeBase58)
  const called = new Set(transaction.instructions.map(({ programIdIndex }) => programIdIndex))
  const addresses = [...staticKeys, ...loaded.writable, ...loaded.readonly]
  const loaderPresent = addresses.includes(UPGRADEABLE_LOADER)
  return addresses.map((address, index) => {
    const isStatic = index < staticKeys.length
    const isRequestedWritable = isStatic
      ? isWritableStatic(transaction, index)
      : index < staticKeys.length + loaded.writable.length
    return {
      address,
      writable: isRequestedWritable && !RESERVED_KEYS.has(address) && (loaderPresent || !called.has(index)),
      signer: isStatic && isSigner(transaction, index),
      source: isStatic ? 'transaction' : 'lookupTable',
    }
  })
}
