/**
 * The types of the embedded chain and the one interface its servers (http, ws, grpc) and the shred source use.
 * Addresses, signatures and hashes are base58 text in this module; bytes appear only where a wire format needs them.
 */

import type { ChainInstruction, ChainTokenBalance } from '../../solana/chain-block.ts'
import type { Consensus } from '../options.ts'

export type Commitment = 'processed' | 'confirmed' | 'finalized'

export type Account = {
  readonly lamports: bigint
  readonly owner: string
  readonly data: Uint8Array
  readonly executable: boolean
  readonly rentEpoch: bigint
}

/** One write of one account. `account` is null when the account was deleted. */
export type AccountWrite = {
  readonly address: string
  readonly account: Account | null
  readonly slot: number
  /** Increases by one with every write on the chain. */
  readonly writeVersion: bigint
  /** Base58; absent for writes outside transactions (genesis, fixtures, sysvars). */
  readonly signature?: string
}

/** A transaction error in Solana's JSON form, for example `"AccountNotFound"` or `{"InstructionError":[0,{"Custom":1}]}`. */
export type TransactionError = string | { readonly [name: string]: unknown }

export type TransactionMeta = {
  readonly err: TransactionError | null
  readonly fee: bigint
  readonly preBalances: readonly bigint[]
  readonly postBalances: readonly bigint[]
  readonly preTokenBalances: readonly ChainTokenBalance[]
  readonly postTokenBalances: readonly ChainTokenBalance[]
  readonly innerInstructions: readonly { readonly index: number; readonly instructions: readonly ChainInstruction[] }[]
  readonly logMessages: readonly string[]
  readonly loadedAddresses: { readonly writable: readonly string[]; readonly readonly: readonly string[] }
  readonly computeUnitsConsumed: bigint
  readonly returnData: { readonly programId: string; readonly data: Uint8Array } | null
}

/** The position of a transaction on the chain. */
export type TransactionPosition = { readonly slot: number; readonly index: number }

export type TransactionRecord = {
  readonly signature: string
  readonly slot: number
  /** Index in its block. */
  readonly index: number
  /** The transaction in wire format; parse it with `solana/transaction/transaction.ts`. */
  readonly wire: Uint8Array
  readonly meta: TransactionMeta
  /** The writes of this transaction, in account order. Kept at least until the block is finalized; empty in older history. */
  readonly writes: readonly AccountWrite[]
}

/** A proof-of-history entry: `numHashes` since the previous entry, the resulting hash, and its transactions. */
export type Entry = {
  readonly numHashes: bigint
  readonly hash: Uint8Array
  readonly firstTransaction: number
  readonly transactionCount: number
}

/** The leader's reward for a block: the part of its fees that is not burned. */
export type BlockReward = {
  readonly pubkey: string
  readonly lamports: bigint
  readonly postBalance: bigint
  readonly rewardType: 'Fee'
}

/** What the leader puts at the end of an Alpenglow block (SIMD-0307). */
export type BlockFooter = {
  readonly bankHash: Uint8Array
  readonly producerTimeNanos: bigint
  readonly userAgent: string
}

/** The last block of the tower, which the certificate of the migration to Alpenglow names. */
export type AlpenglowGenesis = { readonly slot: number; readonly blockhash: string }

export type Block = {
  readonly slot: number
  readonly parentSlot: number
  readonly height: number
  readonly blockhash: string
  readonly previousBlockhash: string
  /** Unix seconds. */
  readonly time: number
  readonly leader: string
  readonly entries: readonly Entry[]
  readonly transactions: readonly TransactionRecord[]
  /** Writes outside transactions in this slot (sysvars, the leader's fees). Kept as long as those of transactions. */
  readonly systemWrites: readonly AccountWrite[]
  readonly rewards?: readonly BlockReward[]
  /** Only blocks of Alpenglow have one. */
  readonly footer?: BlockFooter | undefined
}

/**
 * Events of a slot, in this order: opened, frozen, confirmed, finalized. Under Alpenglow each bank has an id, which is known only to this instance of the
 * chain, and a slot can have candidate banks: each of them is opened, usually frozen, and dead once the surviving bank is confirmed.
 */
export type ChainEvent =
  | { readonly kind: 'opened'; readonly slot: number; readonly parentSlot: number; readonly bankId?: BankId }
  | { readonly kind: 'frozen'; readonly block: Block; readonly bankId?: BankId }
  /** A candidate bank; nothing of its block is part of the chain. */
  | { readonly kind: 'candidate'; readonly block: Block; readonly bankId: bigint }
  | { readonly kind: 'dead'; readonly slot: number; readonly parentSlot: number; readonly bankId: bigint }
  | { readonly kind: 'confirmed'; readonly block: Block; readonly bankId?: BankId }
  | { readonly kind: 'finalized'; readonly block: Block; readonly bankId?: BankId }

/** Undefined for a bank of the tower. */
export type BankId = bigint | undefined

export type SubmitOutcome =
  | { readonly ok: true; readonly signature: string }
  | { readonly ok: false; readonly reason: 'engine-down' | 'queue-full' }
  | { readonly ok: false; readonly reason: 'rejected'; readonly err: TransactionError }

export type Simulation = {
  readonly err: TransactionError | null
  readonly meta: TransactionMeta
  /** Every account of the transaction as it is after execution, also those that it closes and those that do not exist. */
  readonly postAccounts: ReadonlyMap<string, Account>
  readonly loadedAccountsDataSize: number
  readonly replacementBlockhash: { readonly blockhash: string; readonly lastValidBlockHeight: number } | null
}

export type Blockhash = { readonly blockhash: string; readonly lastValidBlockHeight: number }

/** The blocks and transactions of one minute; `slot` is the newest of its slots. */
export type PerformanceSample = {
  readonly slot: number
  readonly slots: number
  /** All of them, votes included. */
  readonly transactions: number
  readonly votes: number
}

export interface Chain {
  readonly genesisHash: string
  readonly identity: string
  readonly voteAccount: string
  readonly faucet: string
  /** The length of the open slot. */
  readonly slotMs: number
  /** The consensus of the open slot. */
  readonly consensus: Consensus
  readonly slotsPerEpoch: number
  readonly startedAtMs: number

  /** The newest frozen slot at this commitment. */
  slot(commitment: Commitment): number
  /** The slot that transactions are executed in. */
  openSlot(): number
  /** The banks of the open slot, as they were opened. */
  openBanks(): readonly ChainEvent[]
  /** Undefined while the newest block is one of the tower. */
  alpenglowGenesis(): AlpenglowGenesis | undefined
  firstAvailableSlot(): number
  /** Blocks from this slot on have their account writes. Never above the oldest block that is not finalized. */
  firstSlotWithWrites(): number
  transactionCount(commitment: Commitment): number
  /** The samples of complete minutes, newest first. */
  performanceSamples(limit: number): readonly PerformanceSample[]

  /** Cheaper than `block`, which unpacks older blocks. */
  hasBlock(slot: number): boolean
  block(slot: number): Block | undefined
  transaction(signature: string): TransactionRecord | undefined
  /** Those before this position, or all: newest first, including failed ones. May be read on while the chain goes on. */
  signaturesOf(address: string, before?: TransactionPosition): Iterable<TransactionRecord>

  account(address: string, commitment: Commitment): Account | null
  accountsOwnedBy(owner: string, commitment: Commitment): Iterable<readonly [string, Account]>
  allAccounts(commitment: Commitment): Iterable<readonly [string, Account]>

  latestBlockhash(commitment: Commitment): Blockhash
  /** How many blocks were made after the one with this hash; undefined if the hash is unknown or older than 300 blocks. */
  blockhashAge(blockhash: string, commitment: Commitment): number | undefined

  minimumBalance(dataBytes: number): bigint
  leaderOf(slot: number): string

  /** Checks the transaction, executes it in the open slot and resolves with the outcome. */
  submit(wire: Uint8Array): Promise<SubmitOutcome>
  simulate(
    wire: Uint8Array,
    options: { readonly verifySignatures: boolean; readonly replaceBlockhash: boolean },
  ): Promise<Simulation | 'engine-down'>
  airdrop(address: string, lamports: bigint): Promise<SubmitOutcome>

  /** Listeners are called in the order they were added and must not throw. */
  subscribe(listener: (event: ChainEvent) => void): () => void
}
