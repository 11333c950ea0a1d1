import { type Random, randomInt } from '../../core/random.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { type AddressedAccount, packAccounts } from '../chain/account-codec.ts'
import type { AccountStore } from '../chain/accounts.ts'
import {
  BPF_LOADER,
  BPF_LOADER_DEPRECATED,
  LOADER_V4,
  NATIVE_LOADER,
  SYSVAR_OWNER,
  UPGRADEABLE_LOADER,
} from '../chain/addresses.ts'
import { Bank, type BankOptions, type BankState, type Head } from '../chain/bank.ts'
import type { BlockhashQueue } from '../chain/blockhash-queue.ts'
import type { Account, Block, TransactionRecord } from '../chain/model.ts'
import type { SlotHashes } from '../chain/slot-hashes.ts'
import { parseRecorded } from '../chain/transaction-facts.ts'
import type { EngineReply, EngineRequest, ForkReply } from '../engine/protocol.ts'
import { fromAccount } from '../engine/values.ts'

/** Transactions of one candidate bank. Its slot ends later by their execution. */
const TRANSACTIONS_MAX = 32
/** Data of the accounts that are replaced while a candidate executes; a slot that wrote more has no frozen candidate. */
const BEFORE_BYTES_MAX = 1024 * 1024

export type CandidateState = {
  readonly accounts: AccountStore
  readonly blockhashes: BlockhashQueue
  readonly slotHashes: SlotHashes
}

export type CandidatePlan = {
  readonly slot: number
  readonly number: number
  readonly parent: Head
}

export type CandidateDeps = {
  readonly state: CandidateState
  readonly random: Random
  readonly options: BankOptions
  /** The engine has no other request. */
  readonly execute: (request: EngineRequest) => Promise<EngineReply | 'engine-down'>
}

/** The frozen block of a candidate, and the write version after its last write. Undefined when it could not be executed. */
export async function freezeCandidate(
  plan: CandidatePlan,
  slot: {
    /** What the candidate chooses from. */
    readonly transactions: readonly TransactionRecord[]
    readonly writeVersion: bigint
    readonly unixTimestamp: number
    readonly nowMs: number
  },
  deps: CandidateDeps,
): Promise<{ readonly block: Block; readonly writeVersion: bigint } | undefined> {
  const { state, options } = deps
  const { parent } = plan
  const before = accountsBefore(state.accounts, parent.slot)
  if (before === undefined) return undefined
  const chosen = chooseTransactions(slot.transactions, state.blockhashes, { parent, random: deps.random })
  const reply = await deps.execute({ op: 'fork', before, wires: chosen.map(({ wire }) => wire) })
  if (reply === 'engine-down') return undefined
  const head = { ...parent, writeVersion: slot.writeVersion }
  const bank = new Bank(options, forkedState(state, parent), head, plan)
  bank.open(slot.unixTimestamp, 'alpenglow')
  for (const [index, executed] of (reply as ForkReply).replies.entries()) {
    const record = chosen[index] as TransactionRecord
    if (executed.landed) bank.record(record.wire, parseRecorded(record), executed)
  }
  const block = bank.freeze(slot.nowMs)
  return { block, writeVersion: bank.writeVersion }
}

const LOADERS: ReadonlySet<string> = new Set([
  BPF_LOADER,
  BPF_LOADER_DEPRECATED,
  LOADER_V4,
  NATIVE_LOADER,
  UPGRADEABLE_LOADER,
])

/** All of them, some of them or another order. Without transactions that deploy programs, and those whose blockhash the candidate's parent does not know. */
function chooseTransactions(
  transactions: readonly TransactionRecord[],
  blockhashes: BlockhashQueue,
  { parent, random }: { readonly parent: Head; readonly random: Random },
): TransactionRecord[] {
  const possible = transactions.filter((record) => {
    const { recentBlockhash, staticKeys } = parseRecorded(record)
    const age = blockhashes.ageAt(encodeBase58(recentBlockhash), parent.height)
    return age !== undefined && !staticKeys.some((key) => LOADERS.has(encodeBase58(key)))
  })
  const kind = randomInt(random, 3)
  if (kind === 1) return possible.filter(() => random.float() < 0.5).slice(0, TRANSACTIONS_MAX)
  const chosen = possible.slice(0, TRANSACTIONS_MAX)
  if (kind === 2) {
    for (let at = chosen.length - 1; at > 0; at--) {
      const other = randomInt(random, at + 1)
      ;[chosen[at], chosen[other]] = [chosen[other] as TransactionRecord, chosen[at] as TransactionRecord]
    }
  }
  return chosen
}

/** The accounts that were written since the end of `slot`, as they were then. Sysvars stay: the engine has those of the open slot. */
function accountsBefore(accounts: AccountStore, slot: number): Uint8Array | undefined {
  const before: AddressedAccount[] = []
  let bytes = 0
  for (const address of accounts.touchedAfter(slot)) {
    if (accounts.readNewest(address)?.owner === SYSVAR_OWNER) continue
    const account = accounts.read(address, slot)
    bytes += account?.data.length ?? 0
    if (bytes > BEFORE_BYTES_MAX) return undefined
    before.push([decodeBase58(address), account && fromAccount(account)])
  }
  return packAccounts(before)
}

/** A state that begins with that of `parent`; what is written to it is not part of the chain. */
function forkedState({ accounts, blockhashes, slotHashes }: CandidateState, parent: Head): BankState {
  const written = new Map<string, Account | null>()
  let own: Uint8Array | undefined
  return {
    accounts: {
      write: ({ address, account }) => void written.set(address, account),
      readNewest: (address) =>
        written.has(address) ? (written.get(address) ?? null) : accounts.read(address, parent.slot),
    },
    blockhashes: {
      push: (blockhash) => (own = decodeBase58(blockhash)),
      upTo: (height, count) =>
        own && height > parent.height
          ? [own, ...blockhashes.upTo(parent.height, count - 1)]
          : blockhashes.upTo(Math.min(height, parent.height), count),
    },
    slotHashes: {
      push() {},
      before: (slot, count) => slotHashes.before(Math.min(slot, parent.slot + 1), count),
    },
  }
}
