import { Buffer } from 'node:buffer'
import { BlockFault, type ChainInstruction, type ChainTokenBalance, type ChainTransaction } from '../chain-block.ts'
import { encodeBase58 } from '../crypto/base58.ts'
import { decodeTransactionError, type TransactionErrorJson } from '../transaction/error.ts'
import type { MessageReader } from './message-reader.ts'

type Message = Pick<ChainTransaction, 'version' | 'header' | 'accountKeys' | 'recentBlockhash' | 'instructions'>
type Meta = Pick<
  ChainTransaction,
  | 'innerInstructions'
  | 'error'
  | 'fee'
  | 'computeUnits'
  | 'costUnits'
  | 'preBalances'
  | 'postBalances'
  | 'preTokenBalances'
  | 'postTokenBalances'
  | 'logMessages'
> & { readonly loadedWritable: readonly string[]; readonly loadedReadonly: readonly string[] }

/** Decodes a SubscribeUpdateTransactionInfo. Throws BlockFault when a required part is missing. */
export function transactionOf(reader: MessageReader, keys: KeyTexts): ChainTransaction {
  let signature = ''
  let index = 0
  let message: Message | undefined
  let meta: Meta | undefined
  while (reader.next()) {
    if (reader.field === 1) signature = encodeBase58(reader.bytes())
    else if (reader.field === 3) message = messageOf(reader.message(), keys) ?? message
    else if (reader.field === 4) meta = metaOf(reader.message(), keys)
    else if (reader.field === 5) index = reader.number()
    else reader.skip()
  }
  if (message === undefined) throw new BlockFault(`transaction ${index} has no message`)
  if (meta === undefined) throw new BlockFault(`transaction ${index} has no result`)
  const { loadedWritable, loadedReadonly, ...result } = meta
  return {
    index,
    signature,
    version: message.version,
    header: message.header,
    accountKeys:
      loadedWritable.length + loadedReadonly.length === 0
        ? message.accountKeys
        : [...message.accountKeys, ...loadedWritable, ...loadedReadonly],
    staticKeyCount: message.accountKeys.length,
    loadedWritableCount: loadedWritable.length,
    recentBlockhash: message.recentBlockhash,
    instructions: message.instructions,
    ...result,
  }
}

/** The message of a Transaction; undefined when the message or its header is missing. */
function messageOf(transaction: MessageReader, keys: KeyTexts): Message | undefined {
  const accountKeys: string[] = []
  const instructions: ChainInstruction[] = []
  let header: Message['header'] | undefined
  let recentBlockhash = ''
  let isVersioned = false
  let hasConfig = false
  while (transaction.next()) {
    if (transaction.field !== 2) {
      transaction.skip()
      continue
    }
    const reader = transaction.message()
    while (reader.next()) {
      if (reader.field === 1) header = headerOf(reader.message())
      else if (reader.field === 2) accountKeys.push(keys.text(reader))
      else if (reader.field === 3) recentBlockhash = keys.text(reader)
      else if (reader.field === 4) instructions.push(instructionOf(reader.message(), 1))
      else if (reader.field === 5) isVersioned = reader.number() !== 0
      else {
        hasConfig ||= reader.field === 7
        reader.skip()
      }
    }
  }
  if (header === undefined) return undefined
  const version = !isVersioned ? 'legacy' : hasConfig ? '1' : '0'
  return { version, header, accountKeys, recentBlockhash, instructions }
}

function headerOf(reader: MessageReader): Message['header'] {
  let [numRequiredSignatures, numReadonlySigned, numReadonlyUnsigned] = [0, 0, 0]
  while (reader.next()) {
    if (reader.field === 1) numRequiredSignatures = reader.number()
    else if (reader.field === 2) numReadonlySigned = reader.number()
    else if (reader.field === 3) numReadonlyUnsigned = reader.number()
    else reader.skip()
  }
  return { numRequiredSignatures, numReadonlySigned, numReadonlyUnsigned }
}

const NO_BYTES = new Uint8Array()

/** A top-level or inner instruction. Inner ones have a stack height, except from nodes before 1.14.6. */
function instructionOf(reader: MessageReader, heightUnreported: number): ChainInstruction {
  let programIdIndex = 0
  let accounts = NO_BYTES
  let data = NO_BYTES
  let stackHeight = heightUnreported
  while (reader.next()) {
    if (reader.field === 1) programIdIndex = reader.number()
    else if (reader.field === 2) accounts = reader.bytes()
    else if (reader.field === 3) data = reader.bytes()
    else if (reader.field === 4) stackHeight = reader.number()
    else reader.skip()
  }
  return { programIdIndex, accounts, data, stackHeight }
}

function metaOf(reader: MessageReader, keys: KeyTexts): Meta {
  let error: TransactionErrorJson | undefined
  let [fee, computeUnits, costUnits] = [0n, 0n, 0n]
  const preBalances: bigint[] = []
  const postBalances: bigint[] = []
  const innerInstructions: { index: number; instructions: ChainInstruction[] }[] = []
  const logMessages: string[] = []
  const preTokenBalances: ChainTokenBalance[] = []
  const postTokenBalances: ChainTokenBalance[] = []
  const loadedWritable: string[] = []
  const loadedReadonly: string[] = []
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        error = errorOf(onlyBytes(reader.message()))
        break
      case 2:
        fee = reader.bigint()
        break
      case 3:
        reader.bigints(preBalances)
        break
      case 4:
        reader.bigints(postBalances)
        break
      case 5:
        innerInstructions.push(innerInstructionsOf(reader.message()))
        break
      case 6:
        logMessages.push(reader.text())
        break
      case 7:
        preTokenBalances.push(tokenBalanceOf(reader.message(), keys))
        break
      case 8:
        postTokenBalances.push(tokenBalanceOf(reader.message(), keys))
        break
      case 12:
        loadedWritable.push(keys.text(reader))
        break
      case 13:
        loadedReadonly.push(keys.text(reader))
        break
      case 16:
        computeUnits = reader.bigint()
        break
      case 17:
        costUnits = reader.bigint()
        break
      default:
        reader.skip()
    }
  }
  return {
    innerInstructions,
    error,
    fee,
    computeUnits,
    costUnits,
    preBalances,
    postBalances,
    preTokenBalances,
    postTokenBalances,
    logMessages,
    loadedWritable,
    loadedReadonly,
  }
}

/** An unknown error of a newer node is kept as its number, so that a failed transaction never counts as a success. */
function errorOf(bincode: Uint8Array): TransactionErrorJson {
  return decodeTransactionError(bincode) ?? `Unknown(${Buffer.from(bincode).toString('hex')})`
}

function innerInstructionsOf(reader: MessageReader): { index: number; instructions: ChainInstruction[] } {
  let index = 0
  const instructions: ChainInstruction[] = []
  while (reader.next()) {
    if (reader.field === 1) index = reader.number()
    // The stack height of an inner instruction is at least 2.
    else if (reader.field === 2) instructions.push(instructionOf(reader.message(), 2))
    else reader.skip()
  }
  return { index, instructions }
}

function tokenBalanceOf(reader: MessageReader, keys: KeyTexts): ChainTokenBalance {
  let accountIndex = 0
  let [mint, owner, programId] = ['', '', '']
  let amount = 0n
  let decimals = 0
  while (reader.next()) {
    if (reader.field === 1) accountIndex = reader.number()
    else if (reader.field === 2) mint = keys.same(reader.text())
    else if (reader.field === 3) {
      const reported = reader.message()
      while (reported.next()) {
        if (reported.field === 2) decimals = reported.number()
        else if (reported.field === 3) amount = amountOf(reported.text())
        else reported.skip()
      }
    } else if (reader.field === 4) owner = keys.same(reader.text())
    else if (reader.field === 5) programId = keys.same(reader.text())
    else reader.skip()
  }
  return { accountIndex, mint, owner, programId, amount, decimals }
}

function onlyBytes(reader: MessageReader): Uint8Array {
  let value: Uint8Array = NO_BYTES
  while (reader.next()) {
    if (reader.field === 1) value = reader.bytes()
    else reader.skip()
  }
  return value
}

/** The amount is sent as decimal text, because a JSON number cannot hold a u64. Empty text means 0. */
function amountOf(text: string): bigint {
  if (!/^\d{0,20}$/.test(text)) throw new BlockFault('the amount of a token balance is no number')
  return BigInt(text)
}

/** Caches base58 texts: most transactions of a block use the same programs and a few hot accounts. */
export class KeyTexts {
  readonly #known = new Map<string, string>()
  readonly #texts = new Map<string, string>()

  /** The base58 text of a bytes field. */
  text(reader: MessageReader): string {
    const { buffer, from, to } = reader.span()
    const raw = buffer.toString('latin1', from, to)
    let text = this.#known.get(raw)
    if (text === undefined) {
      text = this.same(encodeBase58(buffer.subarray(from, to)))
      this.#known.set(raw, text)
    }
    return text
  }

  /** Returns the first string with this content, so that equal strings share memory. */
  same(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    this.#texts.set(text, text)
    return text
  }
}
