import { ACCESS_CONTEXT } from '../../evm/event/payloads.ts'
import type { ExecRecorder } from '../../evm/event/recorder.ts'
import { EVENT } from '../../evm/event/type.ts'
import { type Hex, toHex } from '../../evm/hex.ts'
import { BLOOM_BYTES, bloomBits, setBloomBits } from '../../evm/logs-bloom.ts'
import type { Run } from './lanes.ts'
import {
  accessPayloads,
  type ChainFacts,
  type Encoded,
  framePayload,
  HEADER_END,
  headerPayload,
  logPayload,
  outputPayload,
  PERF_ENTER,
  PERF_EXIT,
  TXN_END,
} from './payloads.ts'
import { type EvmState, uncachedMappingEntry } from './state.ts'
import type { AccountTouch, Txn } from './txn.ts'

/** Identifiers of a proposed block. */
export type BlockIdentity = {
  readonly id: Hex
  readonly number: number
  readonly round: number
  readonly parentHash: Hex
  readonly hash: Hex
  readonly proposalNs: bigint
}

export type BlockPlan = {
  readonly identity: BlockIdentity
  readonly txns: readonly Txn[]
  readonly runs: readonly Run[]
}

/** Hash of an empty list of uncles. */
const NO_OMMERS: Hex = '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347'
const GAS_LIMIT = 200_000_000n
/** Consensus rounds per epoch. */
const EPOCH_ROUNDS = 50_000
/** Minimum time between two events of one thread. */
const STEP_NS = 150
/** Duration of the state commit after the last transaction: a fixed part, and a part per transaction. */
const COMMIT_NS = { block: 60_000, txn: 400 }
/** Number of past hashes in the history contract. EIP-2935. */
const HISTORY_BLOCKS = 8191

/** Records complete blocks, and the first events of those that are invalid. */
export class BlockRecorder {
  readonly #recorder: ExecRecorder
  readonly #state: EvmState
  readonly #facts: ChainFacts
  readonly #bloomBits = new WeakMap<Uint8Array, readonly number[]>()

  constructor(recorder: ExecRecorder, state: EvmState, facts: ChainFacts) {
    this.#recorder = recorder
    this.#state = state
    this.#facts = facts
  }

  /** The duration of the block's execution, from its first event to its last. */
  wallNs({ txns, runs }: BlockPlan): number {
    const lastNs = runs.reduce((last, { endNs }) => Math.max(last, endNs), 0)
    return PROLOGUE_NS + lastNs + EPILOGUE_NS + COMMIT_NS.block + COMMIT_NS.txn * txns.length
  }

  /** Records all events from BLOCK_START to BLOCK_END; transactions are interleaved by the times of their runs. */
  record(plan: BlockPlan, startNs: bigint): void {
    const { identity, txns, runs } = plan
    this.start(identity, txns.length, startNs)
    this.#prologue(identity, startNs)
    const parts = runs.flatMap((run, txnIndex) => [
      { atNs: run.startNs, txnIndex, isEnd: false },
      { atNs: run.endNs, txnIndex, isEnd: true },
    ])
    parts.sort((a, b) => a.atNs - b.atNs || a.txnIndex - b.txnIndex)
    for (const { atNs, txnIndex, isEnd } of parts) {
      const txn = txns[txnIndex] as Txn
      const events = isEnd ? this.#txnEnd(txn) : this.#txnStart(txn)
      this.#addAll(events, txnIndex, startNs + BigInt(PROLOGUE_NS + Math.floor(atNs)))
    }
    const endNs = startNs + BigInt(Math.floor(this.wallNs(plan)))
    const exitNs = endNs - BigInt(COMMIT_NS.block + COMMIT_NS.txn * txns.length)
    this.#addAll(accessPayloads([feeTouch(this.#state)], ACCESS_CONTEXT.epilogue), -1, exitNs - BigInt(EPILOGUE_NS / 2))
    this.#recorder.add('BLOCK_PERF_EVM_EXIT', {}, { timeNs: exitNs })
    this.#recorder.add(
      'BLOCK_END',
      {
        eth_block_hash: identity.hash,
        state_root: rootOf(identity.hash, 1),
        receipts_root: rootOf(identity.hash, 2),
        logs_bloom: this.#bloomOf(txns),
        gas_used: BigInt(txns.reduce((sum, { gasUsed }) => sum + gasUsed, 0)),
      },
      { timeNs: endNs },
    )
  }

  start({ id, number, round, parentHash, hash, proposalNs }: BlockIdentity, txnCount: number, timeNs: bigint): void {
    this.#recorder.add(
      'BLOCK_START',
      {
        id,
        block_number: BigInt(number),
        round: BigInt(round),
        epoch: BigInt(Math.floor(round / EPOCH_ROUNDS)),
        proposal_epoch_nanos: proposalNs,
        chain_id: BigInt(this.#facts.chainId),
        author_x: rootOf(id, 3),
        parent_eth_hash: parentHash,
        ommers_hash: NO_OMMERS,
        beneficiary: toHex(this.#state.feeRecipient.address),
        transactions_root: rootOf(hash, 4),
        number: BigInt(number),
        gas_limit: GAS_LIMIT,
        timestamp: proposalNs / 1_000_000_000n,
        prev_randao: rootOf(id, 5),
        base_fee_per_gas: BigInt(this.#facts.baseFeeGwei) * 1_000_000_000n,
        txn_count: BigInt(txnCount),
      },
      { timeNs },
    )
  }

  /** Records the headers of the first transactions, the last of them rejected: the events of a block that cannot be executed. */
  rejectTxn(txns: readonly Txn[], reason: number, startNs: bigint): void {
    for (const [txnIndex, txn] of txns.entries()) {
      const timeNs = startNs + BigInt((txnIndex + 1) * 10 * STEP_NS)
      this.#addAll(this.#txnStart(txn), txnIndex, timeNs)
      const location = { timeNs: timeNs + BigInt(5 * STEP_NS), txnIndex }
      if (txnIndex === txns.length - 1) this.#recorder.add('TXN_REJECT', { reason }, location)
      this.#recorder.addEncoded(EVENT.TXN_PERF_EVM_EXIT, PERF_EXIT.payload, location)
    }
  }

  #prologue({ number }: BlockIdentity, startNs: bigint): void {
    const { history } = this.#state
    const slot = uncachedMappingEntry(history, 0, number % HISTORY_BLOCKS)
    const touch = { ...untouched(history), slots: [{ slot, start: 0, end: number, isTransient: false }] }
    this.#recorder.add('BLOCK_PERF_EVM_ENTER', {}, { timeNs: startNs + BigInt(STEP_NS) })
    this.#addAll(accessPayloads([touch], ACCESS_CONTEXT.prologue), -1, startNs + BigInt(2 * STEP_NS))
  }

  #txnStart(txn: Txn): Encoded[] {
    return [PERF_ENTER, headerPayload(txn, this.#facts), HEADER_END]
  }

  *#txnEnd(txn: Txn): Generator<Encoded> {
    yield outputPayload(txn)
    for (const [index, log] of txn.logs.entries()) yield logPayload(log, index)
    for (const [index, frame] of txn.frames.entries()) yield framePayload(frame, index, txn)
    yield* accessPayloads(txn.touches, ACCESS_CONTEXT.transaction)
    yield TXN_END
    yield PERF_EXIT
  }

  #addAll(events: Iterable<Encoded>, txnIndex: number, fromNs: bigint): void {
    let timeNs = fromNs
    for (const { type, payload, accountIndex = 0 } of events) {
      this.#recorder.addEncoded(type, payload, { timeNs, txnIndex, accountIndex })
      // Only the interval between the perf markers counts as execution time; the other events take none.
      if (type === EVENT.TXN_PERF_EVM_ENTER) timeNs += BigInt(STEP_NS)
    }
  }

  #bloomOf(txns: readonly Txn[]): Hex {
    const bloom = new Uint8Array(BLOOM_BYTES)
    for (const { logs } of txns)
      for (const { contract, topics } of logs)
        for (const value of [contract.address, ...topics]) setBloomBits(bloom, this.#bitsOf(value))
    return toHex(bloom)
  }

  #bitsOf(value: Uint8Array): readonly number[] {
    const known = this.#bloomBits.get(value)
    if (known !== undefined) return known
    const bits = bloomBits(value)
    this.#bloomBits.set(value, bits)
    return bits
  }
}

const PROLOGUE_NS = 5000
const EPILOGUE_NS = 4000

/** A made-up root hash that differs for each use. */
function rootOf(hash: Hex, use: number): Hex {
  return `0x${hash.slice(4)}${use.toString(16).padStart(2, '0')}`
}

function feeTouch({ feeRecipient }: EvmState): AccountTouch {
  return untouched(feeRecipient)
}

function untouched<A extends AccountTouch['account']>(account: A): AccountTouch {
  const { nonce, balanceGwei } = account
  return { account, nonce, balanceGwei, nonceAfter: nonce, balanceGweiAfter: balanceGwei, slots: [] }
}
