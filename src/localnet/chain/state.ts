import type { Clock } from '../../core/clock.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import type { EngineProcess } from '../engine/process.ts'
import type { DumpReply } from '../engine/protocol.ts'
import {
  encodeClock,
  encodeEpochSchedule,
  RECENT_BLOCKHASHES_MAX,
  recentBlockhashesAccount,
  slotHashesAccount,
  slotHistoryAccount,
  sysvarAccount,
} from '../engine/sysvars.ts'
import { textKey, toAccount } from '../engine/values.ts'
import { createGenesis } from '../genesis/genesis.ts'
import type { ChainKeys } from '../genesis/keys.ts'
import { type LocalnetOptions, ledgerLimitsOf } from '../options.ts'
import { AccountStore } from './accounts.ts'
import {
  CLOCK_SYSVAR,
  EPOCH_SCHEDULE_SYSVAR,
  RECENT_BLOCKHASHES_SYSVAR,
  SLOT_HASHES_SYSVAR,
  SLOT_HISTORY_SYSVAR,
} from './addresses.ts'
import type { Head } from './bank.ts'
import { packBlock } from './block-codec.ts'
import { type BlockhashQueue, createBlockhashQueue } from './blockhash-queue.ts'
import { Ledger } from './ledger.ts'
import type { Account, AccountWrite, Block } from './model.ts'
import { recordEntries, sha256 } from './poh.ts'
import { createSlotHashes, type SlotHashes } from './slot-hashes.ts'

/** The complete state of the chain in the main process. */
export type ChainState = {
  readonly genesisHash: string
  readonly accounts: AccountStore
  readonly ledger: Ledger
  readonly blockhashes: BlockhashQueue
  readonly slotHashes: SlotHashes
  readonly head: Head
}

/** The state of a new chain: slot 0 is frozen and holds the genesis accounts. The engine provides its programs and sysvars. */
export async function createGenesisState(
  options: LocalnetOptions,
  source: {
    readonly keys: ChainKeys
    readonly fixtures: Iterable<readonly [string, Account]>
    readonly clock: Clock
    readonly engine: EngineProcess
  },
): Promise<{ readonly state: ChainState; readonly block: Block }> {
  const { keys, fixtures, clock } = source
  const { ticksPerSlot, slotsPerEpoch, limits } = options
  const engineAccounts = await readEngineAccounts(source.engine)
  const genesis = createGenesis({ engineAccounts, fixtures, keys, createdAtMs: clock.nowMs() })
  const accounts = new AccountStore()
  for (const [address, account] of genesis.accounts) accounts.load(address, account)
  const genesisHash = decodeBase58(genesis.hash)
  const entries = recordEntries({ previousHash: genesisHash, batches: [], ticks: ticksPerSlot })
  const lastHash = entries.at(-1)?.hash as Uint8Array
  const block: Block = {
    slot: 0,
    parentSlot: 0,
    height: 0,
    blockhash: encodeBase58(lastHash),
    previousBlockhash: genesis.hash,
    time: Math.floor(clock.nowMs() / 1000),
    leader: encodeBase58(keys.identity.publicKey),
    entries,
    transactions: [],
    systemWrites: [],
    rewards: [],
  }
  const bankHash = sha256(genesisHash, lastHash)
  const blockhashes = createBlockhashQueue()
  blockhashes.push(block.blockhash, 0)
  const head: Head = {
    slot: 0,
    height: 0,
    blockhash: block.blockhash,
    bankHash,
    time: block.time,
    epochStartTimestamp: block.time,
    transactionCount: 0,
    writeVersion: BigInt(genesis.accounts.size),
  }
  const { finalizedSlots } = options.commitment
  const ledger = new Ledger({ ...ledgerLimitsOf(limits), finalizedSlots })
  ledger.add(block, packBlock(block, head, ticksPerSlot).core)
  const slotHashes = createSlotHashes()
  slotHashes.push(0, bankHash)
  const chain = { slotHashes, blockhashes, slotsPerEpoch }
  for (const [address, account] of sysvarsOf(head, chain)) accounts.load(address, account)
  return { state: { genesisHash: genesis.hash, accounts, ledger, blockhashes, slotHashes, head }, block }
}

/**
 * Roots the blocks of the last `slots` that were finalized under Alpenglow and returns the newest of them, or -1. There a block is finalized with the one
 * after it at the latest, and a chain that continues from its head takes the head for finalized.
 */
export function rootFinalized({ head, ledger, accounts }: ChainState, slots: number): number {
  let slot = head.slot
  while (slot > head.slot - slots && !ledger.block(slot)?.footer) slot--
  if (slot <= head.slot - slots) return -1
  for (let rooted = head.slot - slots + 1; rooted <= slot; rooted++) accounts.root(rooted)
  return slot
}

/** The writes of the sysvars in the block `head`, with the versions that the bank gave them: two when it opened the slot, two when it froze the block. */
export function slotSysvarWrites(head: Head, parent: Head, chain: Parameters<typeof sysvarsOf>[1]): AccountWrite[] {
  const sysvars = new Map(sysvarsOf(head, chain))
  const versions: [string, bigint][] = [
    [CLOCK_SYSVAR, parent.writeVersion + 1n],
    [SLOT_HASHES_SYSVAR, parent.writeVersion + 2n],
    [RECENT_BLOCKHASHES_SYSVAR, head.writeVersion - 1n],
    [SLOT_HISTORY_SYSVAR, head.writeVersion],
  ]
  return versions.map(([address, writeVersion]) => ({
    address,
    account: sysvars.get(address) as Account,
    slot: head.slot,
    writeVersion,
  }))
}

/** The sysvars that change with every slot, as of the end of the frozen block `head`. */
export function sysvarsOf(
  head: Head,
  chain: {
    readonly slotHashes: SlotHashes
    readonly blockhashes: BlockhashQueue
    readonly slotsPerEpoch: number
  },
): [string, Account][] {
  const { slotsPerEpoch, slotHashes, blockhashes } = chain
  const clock = {
    slot: head.slot,
    epoch: Math.floor(head.slot / slotsPerEpoch),
    epochStartTimestamp: head.epochStartTimestamp,
    unixTimestamp: head.time,
  }
  return [
    [CLOCK_SYSVAR, sysvarAccount(encodeClock(clock))],
    [EPOCH_SCHEDULE_SYSVAR, sysvarAccount(encodeEpochSchedule(slotsPerEpoch))],
    [SLOT_HASHES_SYSVAR, slotHashesAccount(() => slotHashes.before(head.slot))],
    [RECENT_BLOCKHASHES_SYSVAR, recentBlockhashesAccount(() => blockhashes.upTo(head.height, RECENT_BLOCKHASHES_MAX))],
    [SLOT_HISTORY_SYSVAR, slotHistoryAccount(head.slot)],
  ]
}

async function readEngineAccounts(engine: EngineProcess): Promise<[string, Account][]> {
  const { promise, resolve, reject } = Promise.withResolvers<DumpReply>()
  engine.send({ op: 'dump' }, (reply) => {
    if (reply === 'engine-down') reject(new Error('the engine died before the genesis was created'))
    else resolve(reply as DumpReply)
  })
  const { accounts } = await promise
  return accounts.map(([address, account]) => [textKey(address), toAccount(account)])
}
