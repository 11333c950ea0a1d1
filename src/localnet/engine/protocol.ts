import type { TransactionError } from '../chain/model.ts'

/** Messages between the main process and the engine. Addresses are raw bytes here and text only in the main process. */

export type EngineAccount = {
  readonly lamports: bigint
  readonly owner: Uint8Array
  readonly data: Uint8Array
  readonly executable: boolean
}

export type EngineTokenBalance = {
  readonly accountIndex: number
  readonly mint: Uint8Array
  readonly owner: Uint8Array
  readonly programId: Uint8Array
  readonly amount: bigint
  readonly decimals: number
}

export type EngineInnerInstruction = {
  readonly programIdIndex: number
  readonly accounts: Uint8Array
  readonly data: Uint8Array
  readonly stackHeight: number
}

export type EngineMeta = {
  readonly err: TransactionError | null
  readonly fee: bigint
  readonly priorityFee: bigint
  readonly preBalances: bigint[]
  readonly postBalances: bigint[]
  readonly preTokenBalances: EngineTokenBalance[]
  readonly postTokenBalances: EngineTokenBalance[]
  readonly innerInstructions: { readonly index: number; readonly instructions: EngineInnerInstruction[] }[]
  readonly logMessages: string[]
  readonly loadedWritable: Uint8Array[]
  readonly loadedReadonly: Uint8Array[]
  readonly computeUnitsConsumed: bigint
  readonly returnData: { readonly programId: Uint8Array; readonly data: Uint8Array } | null
}

/** The open slot. Lists are newest first and are prepended to those the engine has; a new engine receives them complete. */
export type OpenSlot = {
  readonly slot: number
  readonly epoch: number
  readonly epochStartTimestamp: number
  readonly unixTimestamp: number
  readonly slotsPerEpoch: number
  readonly slotHashes: readonly { readonly slot: number; readonly hash: Uint8Array }[]
  readonly blockhashes: readonly Uint8Array[]
}

export type EngineRequest =
  /** Executes the transaction in the open slot. `nonce`: its blockhash is not a recent one, so it must be a durable nonce. */
  | { readonly op: 'execute'; readonly wire: Uint8Array; readonly nonce: boolean }
  | { readonly op: 'simulate'; readonly wire: Uint8Array; readonly nonce: boolean; readonly verifySignatures: boolean }
  /** Accounts in the format of `account-codec.ts`. */
  | { readonly op: 'load'; readonly accounts: Uint8Array }
  | { readonly op: 'open'; readonly slot: OpenSlot }
  | { readonly op: 'dump' }
  /**
   * Executes transactions on another state: `before` replaces accounts for as long as this request runs. All of it is undone before the reply. The
   * signatures were verified before.
   */
  | { readonly op: 'fork'; readonly before: Uint8Array; readonly wires: readonly Uint8Array[] }

export type ExecuteReply =
  | { readonly landed: false; readonly err: TransactionError }
  | {
      readonly landed: true
      readonly meta: EngineMeta
      /** Changed accounts by their index in the transaction's keys. */
      readonly writes: readonly { readonly keyIndex: number; readonly account: EngineAccount | null }[]
    }

export type SimulateReply = {
  readonly meta: EngineMeta
  /** One per key of the transaction, without lamports where it does not exist; empty when it failed before its accounts were loaded. */
  readonly postAccounts: readonly EngineAccount[]
  readonly loadedAccountsDataSize: number
}

/** Addresses the engine refused, for example a program that does not load. */
export type LoadReply = { readonly refused: readonly { readonly address: Uint8Array; readonly reason: string }[] }

export type DumpReply = { readonly accounts: readonly (readonly [address: Uint8Array, account: EngineAccount])[] }

/** One per transaction. */
export type ForkReply = { readonly replies: readonly ExecuteReply[] }

export type EngineReply = ExecuteReply | SimulateReply | LoadReply | DumpReply | ForkReply | null

export type ToEngine = { readonly seq: number; readonly request: EngineRequest }[]
export type FromEngine = { readonly seq: number; readonly reply: EngineReply }[]
