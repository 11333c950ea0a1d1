import assert from 'node:assert/strict'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import type { ExecuteReply, OpenSlot } from '../engine/protocol.ts'
import {
  encodeClock,
  RECENT_BLOCKHASHES_MAX,
  RENT_EXEMPT_EPOCH,
  recentBlockhashesAccount,
  SLOT_HASHES_MAX,
  slotHashesAccount,
  slotHistoryAccount,
  sysvarAccount,
} from '../engine/sysvars.ts'
import { textKey, toAccount, toMeta } from '../engine/values.ts'
import type { Consensus } from '../options.ts'
import type { AccountStore } from './accounts.ts'
import {
  CLOCK_SYSVAR,
  RECENT_BLOCKHASHES_SYSVAR,
  SLOT_HASHES_SYSVAR,
  SLOT_HISTORY_SYSVAR,
  SYSTEM_PROGRAM,
} from './addresses.ts'
import type { BlockhashQueue } from './blockhash-queue.ts'
import type { Account, AccountWrite, AlpenglowGenesis, Block, BlockReward, Entry, TransactionRecord } from './model.ts'
import { lastHashOf, recordEntries, sha256, slotHash } from './poh.ts'
import type { SlotHashes } from './slot-hashes.ts'

/** The newest frozen block and the values the next one builds on. */
export type Head = {
  readonly slot: number
  readonly height: number
  readonly blockhash: string
  readonly bankHash: Uint8Array
  readonly time: number
  readonly epochStartTimestamp: number
  readonly transactionCount: number
  readonly writeVersion: bigint
  /** Undefined for a block of the tower. */
  readonly alpenglowGenesis?: AlpenglowGenesis | undefined
}

export type BankOptions = {
  readonly identity: string
  readonly slotsPerEpoch: number
  readonly ticksPerSlot: number
}

/** A bank that competes with the one of the chain for a slot. */
export type CandidateSlot = {
  /** May be more than one above its parent. */
  readonly slot: number
  /** From 1 among the candidates of the slot. */
  readonly number: number
}

export type BankState = {
  readonly accounts: Pick<AccountStore, 'write' | 'readNewest'>
  readonly blockhashes: Pick<BlockhashQueue, 'push' | 'upTo'>
  readonly slotHashes: SlotHashes
}

/** The ledger stores a transaction's index in its block in 16 bits. */
const TRANSACTIONS_PER_BLOCK_MAX = 65_535
const USER_AGENT = 'sluice-localnet'
const NANOS_PER_MS = 1_000_000n

/** The open slot, in the main process: records the engine's results in order and freezes them into a block. */
export class Bank {
  readonly #options: BankOptions
  readonly #state: BankState
  readonly #candidate: CandidateSlot | undefined
  #head: Head
  #consensus: Consensus = 'tower'
  #unixTimestamp = 0
  #epochStartTimestamp = 0
  #writeVersion: bigint
  #transactions: TransactionRecord[] = []
  #signatures: (readonly Uint8Array[])[] = []
  #systemWrites: AccountWrite[] = []
  #leaderFee = 0n

  constructor(options: BankOptions, state: BankState, head: Head, candidate?: CandidateSlot) {
    this.#options = options
    this.#candidate = candidate
    this.#state = state
    this.#head = head
    this.#writeVersion = head.writeVersion
  }

  get head(): Head {
    return this.#head
  }

  get slot(): number {
    return this.#candidate?.slot ?? this.#head.slot + 1
  }

  get consensus(): Consensus {
    return this.#consensus
  }

  get transactions(): readonly TransactionRecord[] {
    return this.#transactions
  }

  get writeVersion(): bigint {
    return this.#writeVersion
  }

  get unixTimestamp(): number {
    return this.#unixTimestamp
  }

  get isFull(): boolean {
    return this.#transactions.length >= TRANSACTIONS_PER_BLOCK_MAX
  }

  /** Opens the slot after the head. Its timestamp is never below its parent's. */
  open(unixSeconds: number, consensus: Consensus): void {
    const { slotsPerEpoch } = this.#options
    this.#consensus = consensus
    this.#unixTimestamp = Math.max(unixSeconds, this.#head.time)
    this.#epochStartTimestamp = this.slot % slotsPerEpoch === 0 ? this.#unixTimestamp : this.#head.epochStartTimestamp
    this.#transactions = []
    this.#signatures = []
    this.#systemWrites = []
    this.#leaderFee = 0n
    const { slot } = this
    const { slotHashes } = this.#state
    this.writeSystem(CLOCK_SYSVAR, sysvarAccount(encodeClock(this.openSlot('next'))))
    this.writeSystem(
      SLOT_HASHES_SYSVAR,
      slotHashesAccount(() => slotHashes.before(slot)),
    )
  }

  /** The slot data for a new engine, or the increment for one that has the previous slot (`next`). */
  openSlot(engine: 'new' | 'next'): OpenSlot {
    const count = engine === 'new' ? SLOT_HASHES_MAX : 1
    return {
      slot: this.slot,
      epoch: Math.floor(this.slot / this.#options.slotsPerEpoch),
      epochStartTimestamp: this.#epochStartTimestamp,
      unixTimestamp: this.#unixTimestamp,
      slotsPerEpoch: this.#options.slotsPerEpoch,
      slotHashes: this.#state.slotHashes.before(this.slot, count),
      blockhashes: this.#state.blockhashes.upTo(this.#head.height, Math.min(count, RECENT_BLOCKHASHES_MAX)),
    }
  }

  record(wire: Uint8Array, transaction: ParsedTransaction, reply: ExecuteReply & { landed: true }): TransactionRecord {
    assert(!this.isFull, 'the block is full')
    const signature = encodeBase58(transaction.signatures[0] as Uint8Array)
    const keys = [...transaction.staticKeys, ...reply.meta.loadedWritable, ...reply.meta.loadedReadonly]
    const writes = reply.writes.map(({ keyIndex, account }) =>
      this.#write(textKey(keys[keyIndex] as Uint8Array), account && toAccount(account), signature),
    )
    const record: TransactionRecord = {
      signature,
      slot: this.slot,
      index: this.#transactions.length,
      wire,
      meta: toMeta(reply.meta),
      writes,
    }
    this.#transactions.push(record)
    this.#signatures.push(transaction.signatures)
    // Half of the base fee is burned; the priority fee goes to the leader in full (SIMD-0096).
    const base = reply.meta.fee - reply.meta.priorityFee
    this.#leaderFee += base - base / 2n + reply.meta.priorityFee
    return record
  }

  /** A write outside any transaction. */
  writeSystem(address: string, account: Account): void {
    this.#systemWrites.push(this.#write(address, account))
  }

  /** Continues above the versions that the candidate banks of the slot used. */
  skipWriteVersions(upTo: bigint): void {
    assert(upTo >= this.#writeVersion, 'write versions only grow')
    this.#writeVersion = upTo
  }

  /** Ends the slot. The caller opens the next one. */
  freeze(nowMs: number): Block {
    const { identity, ticksPerSlot } = this.#options
    const { blockhashes, slotHashes } = this.#state
    const parent = this.#head
    const rewards = this.#payLeader()
    const { slot } = this
    const isAlpenglow = this.#consensus === 'alpenglow'
    const parentHash = decodeBase58(parent.blockhash)
    const recording = {
      previousHash: isAlpenglow ? slotHash(parentHash, slot, this.#candidate?.number) : parentHash,
      batches: this.#signatures.map((signatures) => [signatures]),
      ticks: isAlpenglow ? 0 : ticksPerSlot,
    }
    const lastHash = lastHashOf(recording)
    const blockhash = encodeBase58(lastHash)
    const signatureCount = new Uint8Array(8)
    new DataView(signatureCount.buffer).setBigUint64(0, BigInt(this.#signatures.flat().length), true)
    const bankHash = sha256(parent.bankHash, signatureCount, lastHash)

    const height = parent.height + 1
    blockhashes.push(blockhash, height)
    slotHashes.push(slot, bankHash)
    const recent = recentBlockhashesAccount(() => blockhashes.upTo(height, RECENT_BLOCKHASHES_MAX))
    this.writeSystem(RECENT_BLOCKHASHES_SYSVAR, recent)
    this.writeSystem(SLOT_HISTORY_SYSVAR, slotHistoryAccount(slot))

    // Entries are rarely read, so they are computed on first access.
    let entries: Entry[] | undefined
    const block: Block = {
      slot,
      parentSlot: parent.slot,
      height,
      blockhash,
      previousBlockhash: parent.blockhash,
      time: this.#unixTimestamp,
      leader: identity,
      get entries() {
        entries ??= recordEntries(recording)
        return entries
      },
      transactions: this.#transactions,
      systemWrites: this.#systemWrites,
      rewards,
      ...(isAlpenglow
        ? { footer: { bankHash, producerTimeNanos: BigInt(Math.floor(nowMs)) * NANOS_PER_MS, userAgent: USER_AGENT } }
        : {}),
    }
    this.#head = {
      slot,
      height,
      blockhash,
      bankHash,
      time: this.#unixTimestamp,
      epochStartTimestamp: this.#epochStartTimestamp,
      transactionCount: parent.transactionCount + this.#transactions.length,
      writeVersion: this.#writeVersion,
      ...(isAlpenglow
        ? { alpenglowGenesis: parent.alpenglowGenesis ?? { slot: parent.slot, blockhash: parent.blockhash } }
        : {}),
    }
    return block
  }

  #payLeader(): BlockReward[] {
    if (this.#leaderFee === 0n) return []
    const { identity } = this.#options
    const account = this.#state.accounts.readNewest(identity) ?? EMPTY_WALLET
    const postBalance = account.lamports + this.#leaderFee
    this.writeSystem(identity, { ...account, lamports: postBalance })
    return [{ pubkey: identity, lamports: this.#leaderFee, postBalance, rewardType: 'Fee' }]
  }

  #write(address: string, account: Account | null, signature?: string): AccountWrite {
    this.#writeVersion += 1n
    const write = { address, account, slot: this.slot, writeVersion: this.#writeVersion }
    const full: AccountWrite = signature === undefined ? write : { ...write, signature }
    this.#state.accounts.write(full)
    return full
  }
}

const EMPTY_WALLET: Account = {
  lamports: 0n,
  owner: SYSTEM_PROGRAM,
  data: new Uint8Array(0),
  executable: false,
  rentEpoch: RENT_EXEMPT_EPOCH,
}
