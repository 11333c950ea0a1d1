import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { createSlotHashes, type SlotHashes } from '../engine/slot-hashes.ts'
import { headSysvars } from '../engine/sysvar-accounts.ts'
import type { Genesis } from '../genesis/genesis.ts'
import { AccountStore } from './accounts.ts'
import type { Head } from './bank.ts'
import { packBlock } from './block-codec.ts'
import { type BlockhashQueue, createBlockhashQueue } from './blockhash-queue.ts'
import { Ledger, type LedgerOptions } from './ledger.ts'
import type { Block } from './model.ts'
import { recordEntries, sha256 } from './poh.ts'

/** All the chain knows, in the main process. */
export type ChainState = {
  readonly genesisHash: string
  readonly accounts: AccountStore
  readonly ledger: Ledger
  readonly blockhashes: BlockhashQueue
  readonly slotHashes: SlotHashes
  readonly head: Head
}

export type GenesisOptions = {
  readonly ledger: LedgerOptions
  readonly ticksPerSlot: number
  readonly slotsPerEpoch: number
  readonly identity: string
  readonly unixSeconds: number
}

/** The chain right after its genesis: slot 0 is frozen and holds every account of the genesis. */
export function createGenesisState(
  genesis: Genesis,
  options: GenesisOptions,
): { readonly state: ChainState; readonly block: Block } {
  const accounts = new AccountStore()
  for (const [address, account] of genesis.accounts) accounts.load(address, account)
  const genesisHash = decodeBase58(genesis.hash)
  const entries = recordEntries({ previousHash: genesisHash, batches: [], ticks: options.ticksPerSlot })
  const lastHash = entries.at(-1)?.hash as Uint8Array
  const block: Block = {
    slot: 0,
    parentSlot: 0,
    height: 0,
    blockhash: encodeBase58(lastHash),
    previousBlockhash: genesis.hash,
    time: options.unixSeconds,
    leader: options.identity,
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
  const ledger = new Ledger(options.ledger)
  ledger.add(block, packBlock(block, head, options.ticksPerSlot).core)
  const slotHashes = createSlotHashes()
  slotHashes.push(0, bankHash)
  const chain = { slotHashes, blockhashes, slotsPerEpoch: options.slotsPerEpoch }
  for (const [address, account] of headSysvars(head, chain)) accounts.load(address, account)
  return { state: { genesisHash: genesis.hash, accounts, ledger, blockhashes, slotHashes, head }, block }
}
