import { type Random, randomInt } from '../../core/random.ts'
import type { ExecRecorder } from '../../evm/event/recorder.ts'
import { type Hex, toHex } from '../../evm/hex.ts'
import { type BlockIdentity, BlockRecorder } from './block.ts'
import { type Run, runOnLanes } from './lanes.ts'
import type { EvmState } from './state.ts'
import type { Txn } from './txn.ts'
import { createWorkload } from './workload.ts'

export type RingChainOptions = {
  readonly chainId: number
  readonly firstNumber: number
  /** Mean number of transactions per block. */
  readonly txnsPerBlock: number
  /** Transactions executed in parallel. */
  readonly lanes: number
  /** Probabilities that a proposal is replaced by another with the same number, is invalid, or gets no vote of its own. */
  readonly abandonedShare: number
  readonly invalidShare: number
  readonly skippedVoteShare: number
  /** Share of contract calls that fail. */
  readonly failShare: number
}

export type RingChainStats = {
  blocks: number
  txns: number
  /** Executions repeated because of a conflict. */
  repeatedRuns: number
  abandoned: number
  invalid: number
  skippedVotes: number
}

type Proposal = { readonly identity: BlockIdentity; readonly getsVote: boolean }

/** A block is finalized this many blocks after it was proposed, and verified three blocks later (Monad's consensus). */
const FINAL_DEPTH = 2
const VERIFIED_DEPTH = 5
const BASE_FEE_GWEI = 50
const GENESIS_HASH: Hex = `0x${'00'.repeat(32)}`
/** Reject codes of blocks (WrongMerkleRoot) and transactions (BadNonce). */
const BLOCK_REASON = 16
const TXN_REASON = 3
/** The error domain and code of a failed block; any nonzero pair is valid. */
const EVM_ERROR = { domain_id: 1n, status_code: 3n } as const

/**
 * A simulated chain with parallel execution: every tick proposes a block, executes it and records the events of a node. The same seed
 * and the same times give the same ring, byte for byte.
 */
export class RingChain {
  readonly state: EvmState
  readonly stats: RingChainStats = { blocks: 0, txns: 0, repeatedRuns: 0, abandoned: 0, invalid: 0, skippedVotes: 0 }
  readonly #options: RingChainOptions
  readonly #random: Random
  readonly #recorder: ExecRecorder
  readonly #blocks: BlockRecorder
  readonly #nextTxn: () => Txn
  /** Proposals that extended the chain and are not verified yet, oldest first. */
  readonly #chain: Proposal[] = []
  #number: number
  #round: number
  /** Transactions of an abandoned or invalid block, to be proposed again. */
  #retryTxns: Txn[] | undefined
  #isHeadVoted = true

  constructor(
    options: RingChainOptions,
    { recorder, random, state }: { readonly recorder: ExecRecorder; readonly random: Random; readonly state: EvmState },
  ) {
    this.#options = options
    this.#random = random
    this.#recorder = recorder
    this.state = state
    this.#nextTxn = createWorkload(this.state, random, options)
    this.#blocks = new BlockRecorder(recorder, this.state, { chainId: options.chainId, baseFeeGwei: BASE_FEE_GWEI })
    this.#number = options.firstNumber
    this.#round = options.firstNumber
  }

  /** The number of the block that is proposed next. */
  get nextNumber(): number {
    return this.#number
  }

  /** Proposes a block whose execution ends at `nowNs`. Its events are added to the recorder and not flushed. */
  proposeBlock(nowNs: bigint): void {
    const txns = this.#retryTxns ?? this.#makeTxns()
    const outcome = this.#drawOutcome()
    const runs = runOnLanes(txns, this.#options.lanes)
    const identity = this.#createIdentity(nowNs)
    const plan = { identity, txns, runs }
    const startNs = nowNs - BigInt(Math.floor(this.#blocks.wallNs(plan)))
    this.#voteForHead(startNs)
    this.#retryTxns = outcome === 'accepted' ? undefined : txns
    if (outcome === 'invalid') return this.#recordInvalid(identity, txns, startNs)
    this.#blocks.record(plan, startNs)
    this.#count(txns, runs)
    if (outcome === 'abandoned') this.stats.abandoned += 1
    else this.#extend(identity, nowNs)
  }

  #makeTxns(): Txn[] {
    const mean = this.#options.txnsPerBlock * (0.7 + 0.6 * this.#random.float())
    const count = Math.floor(mean + this.#random.float())
    return Array.from({ length: count }, () => this.#nextTxn())
  }

  #drawOutcome(): 'accepted' | 'abandoned' | 'invalid' {
    const draw = this.#random.float()
    const { abandonedShare, invalidShare } = this.#options
    if (draw < abandonedShare) return 'abandoned'
    return draw < abandonedShare + invalidShare ? 'invalid' : 'accepted'
  }

  #createIdentity(nowNs: bigint): BlockIdentity {
    this.#round += 1
    return {
      id: toHex(this.#random.bytes(32)),
      number: this.#number,
      round: this.#round,
      parentHash: this.#chain.at(-1)?.identity.hash ?? GENESIS_HASH,
      hash: toHex(this.#random.bytes(32)),
      proposalNs: nowNs,
    }
  }

  /** The quorum certificate of a block comes with the next proposal. A skipped one is harmless: the next one covers both. */
  #voteForHead(timeNs: bigint): void {
    const head = this.#chain.at(-1)
    if (head === undefined || this.#isHeadVoted) return
    this.#isHeadVoted = true
    if (!head.getsVote) {
      this.stats.skippedVotes += 1
      return
    }
    const { id, number, round } = head.identity
    this.#recorder.add('BLOCK_QC', { id, block_number: BigInt(number), round: BigInt(round + 1) }, { timeNs })
  }

  #recordInvalid(identity: BlockIdentity, txns: readonly Txn[], startNs: bigint): void {
    this.stats.invalid += 1
    this.#blocks.start(identity, txns.length, startNs)
    const timeNs = startNs + 1_000_000n
    const rejected = txns.slice(0, Math.min(txns.length, 1 + randomInt(this.#random, 8)))
    if (this.#random.float() < 0.5 || rejected.length === 0) {
      this.#recorder.add('BLOCK_REJECT', { reason: BLOCK_REASON }, { timeNs })
      return
    }
    this.#blocks.rejectTxn(rejected, TXN_REASON, startNs)
    this.#recorder.add('EVM_ERROR', EVM_ERROR, { timeNs })
  }

  /** Appends the block to the chain; older ones are finalized and verified. */
  #extend(identity: BlockIdentity, nowNs: bigint): void {
    this.#chain.push({ identity, getsVote: this.#random.float() >= this.#options.skippedVoteShare })
    this.#isHeadVoted = false
    this.#number += 1
    const final = this.#chain.at(-1 - FINAL_DEPTH)?.identity
    if (final !== undefined)
      this.#recorder.add(
        'BLOCK_FINALIZED',
        { id: final.id, block_number: BigInt(final.number) },
        { timeNs: nowNs + 1000n },
      )
    if (this.#chain.length <= VERIFIED_DEPTH) return
    const verified = (this.#chain.shift() as Proposal).identity
    this.#recorder.add('BLOCK_VERIFIED', { block_number: BigInt(verified.number) }, { timeNs: nowNs + 2000n })
  }

  #count(txns: readonly Txn[], runs: readonly Run[]): void {
    this.stats.blocks += 1
    this.stats.txns += txns.length
    this.stats.repeatedRuns += runs.filter(({ isRepeated }) => isRepeated).length
  }
}
