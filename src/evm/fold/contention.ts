import { type Hex, toHex } from '../hex.ts'
import { ACCOUNT_KEY_WORDS, STORAGE_KEY_WORDS } from './access-key.ts'
import { type BlockAccesses, type BlockTouches, countTouches, groupByTxn } from './block-accesses.ts'
import { type ConflictWaves, computeWaves } from './conflict-waves.ts'
import { findTopEdges } from './contract-edges.ts'
import { compareKeys, keepFirst, sortByKey } from './key-order.ts'

export type ContendedSlot = { address: Hex; slot: Hex; txn_count: number; access_count: number }

export type ContendedContract = {
  address: Hex
  total_slots: number
  contended_slots: number
  total_accesses: number
  contention_score: number
}

export type ContractEdge = { contract_a: Hex; contract_b: Hex; shared_txn_count: number }

/** Which proposal the figures belong to: several proposals may share a number. */
export type ProposalIdentity = {
  block_number: number
  /** The consensus id, not the Ethereum hash. */
  block_id: Hex
  /** The proposal of the same number that was executed before this one; left out where there was none. */
  replaces_block_id?: Hex
}

/** Storage contention of one proposal, with the fields and order of the published record. */
export type ContentionData = ProposalIdentity & {
  block_wall_time_ns: number
  total_tx_time_ns: number
  parallel_efficiency_pct: number
  total_unique_slots: number
  contended_slot_count: number
  contention_ratio: number
  total_txn_count: number
  top_contended_slots: ContendedSlot[]
  top_contended_contracts: ContendedContract[]
  contract_edges: ContractEdge[]
}

/** Fields beyond the published record: conflicts (a write involved) instead of contention, and the phases of execution. */
export type ConflictExtras = ConflictWaves &
  ProposalIdentity & {
    /** Contended slots that at least one transaction wrote. */
    contended_with_writer: number
    /** Between the block's perf markers; null without them. */
    evm_time_ns: number | null
    /** From the end of the EVM to the end of the block. */
    commit_time_ns: number | null
  }

/** Storage accesses of a proposal by contract, contended or not. */
export type ContractAccesses = {
  /** Accesses of all contracts. */
  total_accesses: number
  /** The most accessed contracts first. */
  contracts: Omit<ContendedContract, 'contention_score'>[]
}

export type BlockTimes = ProposalIdentity & {
  block_wall_time_ns: number
  total_tx_time_ns: number
  evm_time_ns: number | null
  commit_time_ns: number | null
}

const ADDRESS_BYTES = ACCOUNT_KEY_WORDS * 4
const STORAGE_KEY_BYTES = STORAGE_KEY_WORDS * 4
const TOP_SLOTS = 20
const TOP_CONTRACTS = 15
const TOP_EDGES = 15
/** Contracts of ContractAccesses. */
const TOP_ACCESSED = 32

/** A slot is contended when two or more distinct transactions accessed it; reads count. */
export function foldContention(
  block: BlockAccesses,
  times: BlockTimes,
): { data: ContentionData; extras: ConflictExtras; accesses: ContractAccesses } {
  const grouped = groupByTxn(block)
  const touches = countTouches(block, grouped)
  const slots = sumSlots(block, touches)
  const contracts = sumContracts(block, touches)
  const { block_wall_time_ns, total_tx_time_ns, evm_time_ns, commit_time_ns, ...identity } = times
  const saved = Math.max(0, total_tx_time_ns - block_wall_time_ns)
  return {
    data: {
      ...identity,
      block_wall_time_ns,
      total_tx_time_ns,
      parallel_efficiency_pct: total_tx_time_ns === 0 ? 0 : (saved / total_tx_time_ns) * 100,
      total_unique_slots: slots.unique,
      contended_slot_count: slots.contended,
      contention_ratio: slots.unique === 0 ? 0 : slots.contended / slots.unique,
      total_txn_count: block.txns,
      top_contended_slots: topSlots(block, touches),
      top_contended_contracts: topContracts(block, contracts),
      contract_edges: topEdges(block, touches),
    },
    extras: {
      ...identity,
      contended_with_writer: slots.contendedWithWriter,
      evm_time_ns,
      commit_time_ns,
      ...computeWaves(block, grouped),
    },
    accesses: {
      total_accesses: contracts.accesses.reduce((sum, accesses) => sum + accesses, 0),
      contracts: topAccessed(block, contracts),
    },
  }
}

function sumSlots({ touchedSlots, slotsTouched }: BlockAccesses, { slotTxns, slotHasWriter }: BlockTouches) {
  let unique = 0
  let contended = 0
  let contendedWithWriter = 0
  for (let at = 0; at < slotsTouched; at++) {
    const slot = touchedSlots[at] as number
    const txns = slotTxns[slot] as number
    if (txns >= 1) unique += 1
    if (txns >= 2) contended += 1
    if (txns >= 2 && slotHasWriter[slot] === 1) contendedWithWriter += 1
  }
  return { unique, contended, contendedWithWriter }
}

type ContractSums = { slots: Uint32Array; contended: Uint32Array; accesses: Uint32Array }

/** Counts only slots that a transaction touched, with all their accesses. */
function sumContracts(block: BlockAccesses, { slotTxns }: BlockTouches): ContractSums {
  const count = block.contracts.size
  const sums = { slots: new Uint32Array(count), contended: new Uint32Array(count), accesses: new Uint32Array(count) }
  for (let at = 0; at < block.slotsTouched; at++) {
    const slot = block.touchedSlots[at] as number
    const txns = slotTxns[slot] as number
    if (txns === 0) continue
    const contract = block.contractOf[slot] as number
    sums.slots[contract] = (sums.slots[contract] as number) + 1
    sums.accesses[contract] = (sums.accesses[contract] as number) + (block.accessCount[slot] as number)
    if (txns >= 2) sums.contended[contract] = (sums.contended[contract] as number) + 1
  }
  return sums
}

function topSlots(block: BlockAccesses, { slotTxns }: BlockTouches): ContendedSlot[] {
  const { accessCount, slots, touchedSlots, slotsTouched } = block
  const comesFirst = (x: number, y: number): boolean => {
    if (slotTxns[x] !== slotTxns[y]) return (slotTxns[x] as number) > (slotTxns[y] as number)
    if (accessCount[x] !== accessCount[y]) return (accessCount[x] as number) > (accessCount[y] as number)
    return compareKeys(slots, x, y) < 0
  }
  const top: number[] = []
  for (let at = 0; at < slotsTouched; at++) {
    const slot = touchedSlots[at] as number
    if ((slotTxns[slot] as number) >= 2) keepFirst(top, TOP_SLOTS, slot, comesFirst)
  }
  const bytes = new Uint8Array(slots.keys.buffer)
  return top.map((slot) => ({
    address: toHex(bytes, slot * STORAGE_KEY_BYTES, slot * STORAGE_KEY_BYTES + ADDRESS_BYTES),
    slot: toHex(bytes, slot * STORAGE_KEY_BYTES + ADDRESS_BYTES, (slot + 1) * STORAGE_KEY_BYTES),
    txn_count: slotTxns[slot] as number,
    access_count: accessCount[slot] as number,
  }))
}

function topContracts({ contracts }: BlockAccesses, { slots, contended, accesses }: ContractSums): ContendedContract[] {
  const score = (contract: number): number => (contended[contract] as number) / (slots[contract] as number)
  const comesFirst = (x: number, y: number): boolean => {
    if (contended[x] !== contended[y]) return (contended[x] as number) > (contended[y] as number)
    if (score(x) !== score(y)) return score(x) > score(y)
    return compareKeys(contracts, x, y) < 0
  }
  const top: number[] = []
  for (let contract = 0; contract < slots.length; contract++) {
    if ((contended[contract] as number) > 0) keepFirst(top, TOP_CONTRACTS, contract, comesFirst)
  }
  return listContracts(contracts, { slots, contended, accesses }, top).map((figures, at) => ({
    ...figures,
    contention_score: score(top[at] as number),
  }))
}

function topAccessed({ contracts }: BlockAccesses, sums: ContractSums): ContractAccesses['contracts'] {
  const { accesses } = sums
  const comesFirst = (x: number, y: number): boolean =>
    accesses[x] === accesses[y] ? compareKeys(contracts, x, y) < 0 : (accesses[x] as number) > (accesses[y] as number)
  const top: number[] = []
  for (let contract = 0; contract < accesses.length; contract++) {
    if ((accesses[contract] as number) > 0) keepFirst(top, TOP_ACCESSED, contract, comesFirst)
  }
  return listContracts(contracts, sums, top)
}

function listContracts(
  { keys }: BlockAccesses['contracts'],
  { slots, contended, accesses }: ContractSums,
  listed: readonly number[],
): ContractAccesses['contracts'] {
  const bytes = new Uint8Array(keys.buffer)
  return listed.map((contract) => ({
    address: toHex(bytes, contract * ADDRESS_BYTES, (contract + 1) * ADDRESS_BYTES),
    total_slots: slots[contract] as number,
    contended_slots: contended[contract] as number,
    total_accesses: accesses[contract] as number,
  }))
}

function topEdges({ contracts }: BlockAccesses, touches: BlockTouches): ContractEdge[] {
  const byRank = sortByKey(contracts, touchedContracts(touches))
  const bytes = new Uint8Array(contracts.keys.buffer)
  const addressOf = (rank: number): Hex => {
    const at = (byRank[rank] as number) * ADDRESS_BYTES
    return toHex(bytes, at, at + ADDRESS_BYTES)
  }
  return findTopEdges(touches, byRank, TOP_EDGES).map(({ a, b, txns }) => ({
    contract_a: addressOf(a),
    contract_b: addressOf(b),
    shared_txn_count: txns,
  }))
}

function touchedContracts({ contractTxns }: BlockTouches): Uint32Array {
  const touched = new Uint32Array(contractTxns.length)
  let count = 0
  for (let contract = 0; contract < contractTxns.length; contract++) {
    if ((contractTxns[contract] as number) > 0) touched[count++] = contract
  }
  return touched.subarray(0, count)
}
