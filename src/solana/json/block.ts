import {
  BlockFault,
  type ChainBlock,
  type ChainInstruction,
  type ChainReward,
  type ChainTokenBalance,
  type ChainTransaction,
} from '../chain-block.ts'
import { decodeBase58 } from '../crypto/base58.ts'
import type { TransactionErrorJson } from '../transaction/error.ts'

/**
 * The config of getBlock whose response is read here. `json` and not `base64`, because old blocks have transactions with more
 * instructions than the wire format allows today.
 */
export const GET_BLOCK_CONFIG = {
  encoding: 'json',
  transactionDetails: 'full',
  rewards: true,
  maxSupportedTransactionVersion: 1,
} as const

type Json = { readonly [name: string]: unknown }

/**
 * Reads the result of getBlock with GET_BLOCK_CONFIG. `result` must come from `parseExactJson`: lamports above 2^53 are bigints there.
 * Throws a BlockFault that names the invalid part.
 */
export function blockFromJson(slot: number, result: unknown): ChainBlock {
  const block = object(result, 'block')
  return {
    slot,
    blockhash: text(block['blockhash'], 'blockhash'),
    parentSlot: count(block['parentSlot'], 'parentSlot'),
    parentBlockhash: text(block['previousBlockhash'], 'previousBlockhash'),
    blockTime: block['blockTime'] == null ? undefined : Number(integer(block['blockTime'], 'blockTime')),
    blockHeight: block['blockHeight'] == null ? undefined : count(block['blockHeight'], 'blockHeight'),
    transactions: list(block['transactions'], 'transactions').map(transactionOf),
    rewards: optionalList(block['rewards'], 'rewards').map(rewardOf),
  }
}

/** Digits of an integer with 64 bits, and its sign. */
const INTEGER_CHARS_MAX = 20

/** Parses JSON with exact integers: beyond 2^53 they become bigints, as far as they may have 64 bits. */
export function parseExactJson(source: string): unknown {
  return JSON.parse(source, exactly as (name: string, value: unknown) => unknown)
}

function exactly(_name: string, value: unknown, { source = '' }: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source.length > INTEGER_CHARS_MAX) return value
  if (!/^-?\d+$/.test(source)) return value
  return BigInt(source)
}

function transactionOf(item: unknown, index: number): ChainTransaction {
  const entry = object(item, `transaction ${index}`)
  const transaction = object(entry['transaction'], `transaction ${index}`)
  const message = object(transaction['message'], `message of transaction ${index}`)
  const header = object(message['header'], `header of transaction ${index}`)
  const meta = object(entry['meta'], `result of transaction ${index}`)
  const loaded = meta['loadedAddresses'] == null ? {} : object(meta['loadedAddresses'], 'loadedAddresses')
  const staticKeys = texts(message['accountKeys'], 'accountKeys')
  const loadedWritable = texts(loaded['writable'] ?? [], 'writable')
  const loadedReadonly = texts(loaded['readonly'] ?? [], 'readonly')
  return {
    index,
    signature: text(list(transaction['signatures'], 'signatures')[0], 'signature'),
    version: versionOf(entry['version']),
    header: {
      numRequiredSignatures: count(header['numRequiredSignatures'], 'numRequiredSignatures'),
      numReadonlySigned: count(header['numReadonlySignedAccounts'], 'numReadonlySignedAccounts'),
      numReadonlyUnsigned: count(header['numReadonlyUnsignedAccounts'], 'numReadonlyUnsignedAccounts'),
    },
    accountKeys: [...staticKeys, ...loadedWritable, ...loadedReadonly],
    staticKeyCount: staticKeys.length,
    loadedWritableCount: loadedWritable.length,
    recentBlockhash: text(message['recentBlockhash'], 'recentBlockhash'),
    instructions: list(message['instructions'], 'instructions').map((each) => instructionOf(each, 1)),
    // Nodes before 1.14.6 report no stack height; that of an inner instruction is at least 2.
    innerInstructions: optionalList(meta['innerInstructions'], 'innerInstructions').map((group) => {
      const { index: outer, instructions } = object(group, 'innerInstructions')
      return {
        index: count(outer, 'index'),
        instructions: list(instructions, 'instructions').map((each) => instructionOf(each, 2)),
      }
    }),
    error: (meta['err'] as TransactionErrorJson | null) ?? undefined,
    fee: integer(meta['fee'], 'fee'),
    computeUnits: optionalInteger(meta['computeUnitsConsumed'], 'computeUnitsConsumed'),
    costUnits: optionalInteger(meta['costUnits'], 'costUnits'),
    preBalances: list(meta['preBalances'], 'preBalances').map((value) => integer(value, 'preBalances')),
    postBalances: list(meta['postBalances'], 'postBalances').map((value) => integer(value, 'postBalances')),
    preTokenBalances: optionalList(meta['preTokenBalances'], 'preTokenBalances').map(tokenBalanceOf),
    postTokenBalances: optionalList(meta['postTokenBalances'], 'postTokenBalances').map(tokenBalanceOf),
    logMessages: texts(meta['logMessages'] ?? [], 'logMessages'),
  }
}

function versionOf(value: unknown): ChainTransaction['version'] {
  if (value === 'legacy' || value === undefined) return 'legacy'
  if (value === 0 || value === 1) return value === 0 ? '0' : '1'
  throw new BlockFault(
    `transaction version ${typeof value === 'number' ? value : `of type ${typeof value}`} is not known`,
  )
}

function instructionOf(item: unknown, heightWhenUnreported: number): ChainInstruction {
  const { programIdIndex, accounts, data, stackHeight } = object(item, 'instruction')
  return {
    programIdIndex: count(programIdIndex, 'programIdIndex'),
    accounts: Uint8Array.from(list(accounts, 'accounts').map(accountIndex)),
    data: bytes(data),
    stackHeight: stackHeight == null ? heightWhenUnreported : count(stackHeight, 'stackHeight'),
  }
}

function tokenBalanceOf(item: unknown): ChainTokenBalance {
  const balance = object(item, 'token balance')
  const amount = object(balance['uiTokenAmount'], 'uiTokenAmount')
  return {
    accountIndex: count(balance['accountIndex'], 'accountIndex'),
    mint: text(balance['mint'], 'mint'),
    owner: typeof balance['owner'] === 'string' ? balance['owner'] : '',
    programId: typeof balance['programId'] === 'string' ? balance['programId'] : '',
    amount: digits(amount['amount'], 'amount'),
    decimals: count(amount['decimals'], 'decimals'),
  }
}

function rewardOf(item: unknown): ChainReward {
  const { pubkey, lamports, postBalance, rewardType, commission } = object(item, 'reward')
  return {
    pubkey: text(pubkey, 'pubkey'),
    lamports: integer(lamports, 'lamports'),
    postBalance: integer(postBalance, 'postBalance'),
    rewardType: typeof rewardType === 'string' ? rewardType : '',
    commission: commission == null ? undefined : Number(integer(commission, 'commission')),
  }
}

function object(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new BlockFault(`${what} is no object`)
  return value as Json
}

function list(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new BlockFault(`${what} is no list`)
  return value
}

function optionalList(value: unknown, what: string): readonly unknown[] {
  return value == null ? [] : list(value, what)
}

function text(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new BlockFault(`${what} is no text`)
  return value
}

function texts(value: unknown, what: string): string[] {
  return list(value, what).map((each) => text(each, what))
}

/** The data of an instruction: a call between programs carries at most 10 KiB. */
const DATA_CHARS_MAX = 14_000

function bytes(value: unknown): Uint8Array {
  try {
    return decodeBase58(text(value, 'data'), DATA_CHARS_MAX)
  } catch (cause) {
    throw cause instanceof BlockFault ? cause : new BlockFault('instruction data is not in base58', { cause })
  }
}

function count(value: unknown, what: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new BlockFault(`${what} is no count`)
  return value as number
}

function integer(value: unknown, what: string): bigint {
  if (typeof value === 'bigint') return value
  if (!Number.isSafeInteger(value)) throw new BlockFault(`${what} is no integer`)
  return BigInt(value as number)
}

function digits(value: unknown, what: string): bigint {
  const given = text(value, what)
  if (given.length > INTEGER_CHARS_MAX || !/^\d+$/.test(given)) throw new BlockFault(`${what} is no integer`)
  return BigInt(given)
}

/** A transaction has at most 256 accounts. */
function accountIndex(value: unknown): number {
  const index = count(value, 'accounts')
  if (index > 255) throw new BlockFault(`account ${index} of an instruction is beyond those of a transaction`)
  return index
}

function optionalInteger(value: unknown, what: string): bigint {
  return value == null ? 0n : integer(value, what)
}
