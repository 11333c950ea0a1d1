import type { ChainInstruction, ChainTransaction } from '../../solana/chain-block.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'

/** Tokens or SOL that one instruction moved. */
export type Transfer = {
  readonly kind: 'transfer' | 'transferChecked' | 'mintTo' | 'burn' | 'sol'
  readonly tokenProgram: string
  readonly mint: string
  readonly from: string
  readonly to: string
  readonly fromOwner: string
  readonly toOwner: string
  readonly amount: bigint
  readonly decimals: number
}

const SYSTEM_PROGRAM = '11111111111111111111111111111111'
const TOKEN_PROGRAMS = new Set([
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
])
const SOL_DECIMALS = 9
/** Mint of a token account that was opened and closed inside the transaction by instructions that do not name it. */
const UNKNOWN_MINT = 'unknown'

/** First byte of an instruction of the token programs. */
const TOKEN = {
  initializeAccount: 1,
  transfer: 3,
  mintTo: 7,
  burn: 8,
  transferChecked: 12,
  mintToChecked: 14,
  burnChecked: 15,
  initializeAccount2: 16,
  initializeAccount3: 18,
  transferFeeExtension: 26,
} as const
/** Second byte, after `transferFeeExtension`. */
const TRANSFER_CHECKED_WITH_FEE = 1
/** First four bytes of an instruction of the System Program. */
const SYSTEM = { transfer: 2, transferWithSeed: 11 } as const

type TokenAccount = { readonly mint: string; readonly owner: string; readonly decimals: number | undefined }

/** Reads transfers from the instructions of one transaction; mints and owners of token accounts come from its token balances. */
export function createTransferReader(
  transaction: ChainTransaction,
): (instruction: ChainInstruction) => Transfer | undefined {
  const { accountKeys } = transaction
  let accounts: Map<string, TokenAccount> | undefined
  const keyAt = (instruction: ChainInstruction, at: number): string => accountKeys[instruction.accounts[at] ?? -1] ?? ''

  return (instruction) => {
    const program = accountKeys[instruction.programIdIndex] ?? ''
    if (program === SYSTEM_PROGRAM) return solTransfer(instruction)
    if (!TOKEN_PROGRAMS.has(program)) return undefined
    return tokenTransfer(instruction, program)
  }

  function solTransfer(instruction: ChainInstruction): Transfer | undefined {
    const data = view(instruction.data)
    if (data.length < 12) return undefined
    const tag = data.readUInt32LE(0)
    if (tag !== SYSTEM.transfer && tag !== SYSTEM.transferWithSeed) return undefined
    const from = keyAt(instruction, 0)
    // With a seed, the base account is between the two accounts.
    const to = keyAt(instruction, tag === SYSTEM.transfer ? 1 : 2)
    return {
      kind: 'sol',
      tokenProgram: SYSTEM_PROGRAM,
      mint: '',
      from,
      to,
      fromOwner: from,
      toOwner: to,
      amount: data.readBigUInt64LE(4),
      decimals: SOL_DECIMALS,
    }
  }

  function tokenTransfer(instruction: ChainInstruction, tokenProgram: string): Transfer | undefined {
    const data = view(instruction.data)
    const shape = shapeOf(data)
    if (shape === undefined) return undefined
    accounts ??= tokenAccountsOf(transaction)
    const from = shape.from === undefined ? '' : keyAt(instruction, shape.from)
    const to = shape.to === undefined ? '' : keyAt(instruction, shape.to)
    const known = accounts.get(from) ?? accounts.get(to)
    const mint = shape.mint === undefined ? (known?.mint ?? UNKNOWN_MINT) : keyAt(instruction, shape.mint)
    return {
      kind: shape.kind,
      tokenProgram,
      mint,
      from,
      to,
      fromOwner: accounts.get(from)?.owner ?? '',
      toOwner: accounts.get(to)?.owner ?? '',
      amount: data.readBigUInt64LE(shape.amountAt),
      decimals: shape.decimals ?? accounts.get(from)?.decimals ?? accounts.get(to)?.decimals ?? decimalsOf(mint),
    }
  }

  /** For a mint whose accounts were all opened inside the transaction: from any other balance of it. */
  function decimalsOf(mint: string): number {
    const reported = [...transaction.postTokenBalances, ...transaction.preTokenBalances].find(
      (each) => each.mint === mint,
    )
    return reported?.decimals ?? 0
  }
}

type Shape = {
  readonly kind: Transfer['kind']
  /** Indexes into the accounts of the instruction. */
  readonly from?: number
  readonly to?: number
  readonly mint?: number
  readonly amountAt: number
  readonly decimals?: number | undefined
}

function shapeOf(data: Buffer): Shape | undefined {
  if (data.length < 9) return undefined
  switch (data[0]) {
    case TOKEN.transfer:
      return { kind: 'transfer', from: 0, to: 1, amountAt: 1 }
    case TOKEN.mintTo:
      return { kind: 'mintTo', mint: 0, to: 1, amountAt: 1 }
    case TOKEN.burn:
      return { kind: 'burn', from: 0, mint: 1, amountAt: 1 }
    case TOKEN.transferChecked:
      return { kind: 'transferChecked', from: 0, mint: 1, to: 2, amountAt: 1, decimals: data[9] }
    case TOKEN.mintToChecked:
      return { kind: 'mintTo', mint: 0, to: 1, amountAt: 1, decimals: data[9] }
    case TOKEN.burnChecked:
      return { kind: 'burn', from: 0, mint: 1, amountAt: 1, decimals: data[9] }
    case TOKEN.transferFeeExtension:
      if (data[1] !== TRANSFER_CHECKED_WITH_FEE || data.length < 11) return undefined
      return { kind: 'transferChecked', from: 0, mint: 1, to: 2, amountAt: 2, decimals: data[10] }
    default:
      return undefined
  }
}

function tokenAccountsOf(transaction: ChainTransaction): Map<string, TokenAccount> {
  const { accountKeys, preTokenBalances, postTokenBalances } = transaction
  const accounts = new Map<string, TokenAccount>()
  const readInitialization = ({ programIdIndex, accounts: keyIndexes, data }: ChainInstruction): void => {
    const tag = data[0]
    if (tag !== TOKEN.initializeAccount && tag !== TOKEN.initializeAccount2 && tag !== TOKEN.initializeAccount3) return
    if (!TOKEN_PROGRAMS.has(accountKeys[programIdIndex] ?? '')) return
    const keyAt = (at: number): string => accountKeys[keyIndexes[at] ?? -1] ?? ''
    if (tag === TOKEN.initializeAccount)
      accounts.set(keyAt(0), { mint: keyAt(1), owner: keyAt(2), decimals: undefined })
    else if (data.length >= 33)
      accounts.set(keyAt(0), { mint: keyAt(1), owner: encodeBase58(data.subarray(1, 33)), decimals: undefined })
  }
  for (const instruction of transaction.instructions) readInitialization(instruction)
  for (const { instructions } of transaction.innerInstructions)
    for (const call of instructions) readInitialization(call)
  for (const { accountIndex, ...account } of postTokenBalances) accounts.set(accountKeys[accountIndex] ?? '', account)
  // The balance before takes precedence: the owner may have changed inside the transaction.
  for (const { accountIndex, ...account } of preTokenBalances) accounts.set(accountKeys[accountIndex] ?? '', account)
  return accounts
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
