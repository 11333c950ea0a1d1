import { type Random, randomInt } from '../../core/random.ts'
import type { Bank, BankOptions, Head } from '../chain/bank.ts'
import type { BankId, Block, ChainEvent, TransactionRecord } from '../chain/model.ts'
import type { EngineProcess } from '../engine/process.ts'
import { type CandidateState, freezeCandidate } from './candidate-bank.ts'
import type { CommitmentStep } from './commitments.ts'

export type SlotBanksDeps = {
  readonly bank: Bank
  readonly bankOptions: BankOptions
  readonly state: CandidateState
  readonly engine: EngineProcess
  readonly random: Random
}

/** Ids start anywhere below this, so that those of two instances differ. */
const FIRST_ID_MAX = 2 ** 40

type Candidate = {
  readonly bankId: bigint
  readonly number: number
  readonly parent: Head
  /** Whether its events come before those of the surviving bank. */
  readonly isOpenedFirst: boolean
  readonly isFrozenFirst: boolean
  /** Whether it is dead before the surviving bank is confirmed, or directly after. */
  readonly isDeadFirst: boolean
  /** Set when the slot ends; stays undefined if it could not be executed. */
  block?: Block
}

/**
 * The banks of the open slot and of those that are not finalized. On the tower a slot has one bank without an id. Under Alpenglow every bank has an id, and in
 * some slots one or two candidates compete with the bank that survives: on the same parent or on the one before it, with other transactions or in another order.
 * They are executed on a copy of the state that is thrown away.
 */
export class SlotBanks {
  readonly #deps: SlotBanksDeps
  readonly #candidatePercent: number
  /** The banks of the chain that are not finalized. */
  readonly #ids = new Map<number, bigint>()
  /** Candidates that are not dead yet, by slot. */
  readonly #competing = new Map<number, readonly Candidate[]>()
  #nextId: bigint | undefined
  #bankId: BankId
  #candidates: Candidate[] = []
  #opened: readonly ChainEvent[] = []
  /** The block before the head, and the transactions of the head: what a candidate that skips the head builds on. */
  #beforeHead: Head | undefined
  #headTransactions: readonly TransactionRecord[] = []

  constructor(options: { readonly candidatePercent: number }, deps: SlotBanksDeps) {
    this.#candidatePercent = options.candidatePercent
    this.#deps = deps
  }

  /** As they are announced. */
  get opened(): readonly ChainEvent[] {
    return this.#opened
  }

  get hasCandidates(): boolean {
    return this.#candidates.length > 0
  }

  /** Called after the bank of the chain opened its slot. */
  open(finalizedSlot: number): void {
    const { bank } = this.#deps
    const { slot, head } = bank
    const isAlpenglow = bank.consensus === 'alpenglow'
    this.#bankId = isAlpenglow ? this.#newId() : undefined
    if (this.#bankId !== undefined) this.#ids.set(slot, this.#bankId)
    this.#candidates = isAlpenglow ? this.#drawCandidates(finalizedSlot) : []
    const own: ChainEvent = { kind: 'opened', slot, parentSlot: head.slot, ...withId(this.#bankId) }
    this.#opened = aroundOwn(
      own,
      this.#candidates.map((candidate) => ({
        event: { kind: 'opened', slot, parentSlot: candidate.parent.slot, bankId: candidate.bankId },
        isFirst: candidate.isOpenedFirst,
      })),
    )
  }

  /** Executes the candidates of the open slot. The engine is paused. */
  async freezeCandidates(nowMs: number): Promise<void> {
    const { bank, bankOptions, state, engine, random } = this.#deps
    for (const candidate of this.#candidates) {
      const skipsHead = candidate.parent !== bank.head
      const transactions = skipsHead ? [...this.#headTransactions, ...bank.transactions] : bank.transactions
      const frozen = await freezeCandidate(
        { slot: bank.slot, number: candidate.number, parent: candidate.parent },
        { transactions, writeVersion: bank.writeVersion, unixTimestamp: bank.unixTimestamp, nowMs },
        { state, random, options: bankOptions, execute: (request) => engine.runPaused(request) },
      )
      if (!frozen) continue
      candidate.block = frozen.block
      bank.skipWriteVersions(frozen.writeVersion)
    }
  }

  /** The events of the slot that ended, in order. `parent` is the head that its block was built on. */
  frozen(block: Block, parent: Head): readonly ChainEvent[] {
    const candidates = this.#candidates
    if (candidates.length > 0) this.#competing.set(block.slot, candidates)
    this.#beforeHead = parent
    this.#headTransactions = block.transactions
    return aroundOwn(
      { kind: 'frozen', block, ...withId(this.#bankId) },
      candidates.flatMap(({ block: other, bankId, isFrozenFirst }) =>
        other ? [{ event: { kind: 'candidate' as const, block: other, bankId }, isFirst: isFrozenFirst }] : [],
      ),
    )
  }

  /** The events of a block that reached a level, in order. */
  settled({ kind, slot }: CommitmentStep, block: Block): readonly ChainEvent[] {
    const candidates = this.#competing.get(slot) ?? []
    const bankId = this.#ids.get(slot)
    this.#competing.delete(slot)
    if (kind === 'finalized') this.#ids.delete(slot)
    return aroundOwn(
      { kind, block, ...withId(bankId) },
      candidates.map((candidate) => ({
        event: { kind: 'dead' as const, slot, parentSlot: candidate.parent.slot, bankId: candidate.bankId },
        isFirst: candidate.isDeadFirst,
      })),
    )
  }

  #drawCandidates(finalizedSlot: number): Candidate[] {
    const { random, bank } = this.#deps
    if (random.float() * 100 >= this.#candidatePercent) return []
    // The state of a finalized block's parent is not kept.
    const beforeHead = this.#beforeHead && this.#beforeHead.slot >= finalizedSlot ? this.#beforeHead : undefined
    return Array.from({ length: 1 + randomInt(random, 2) }, (_, index) => ({
      bankId: this.#newId(),
      number: index + 1,
      parent: beforeHead && random.float() < 0.5 ? beforeHead : bank.head,
      isOpenedFirst: random.float() < 0.5,
      isFrozenFirst: random.float() < 0.5,
      isDeadFirst: random.float() < 0.5,
    }))
  }

  #newId(): bigint {
    this.#nextId ??= BigInt(randomInt(this.#deps.random, FIRST_ID_MAX))
    this.#nextId += 1n
    return this.#nextId
  }
}

function withId(bankId: BankId): { readonly bankId?: bigint } {
  return bankId === undefined ? {} : { bankId }
}

/** The event of the surviving bank between those of the candidates. */
function aroundOwn(own: ChainEvent, others: readonly { event: ChainEvent; isFirst: boolean }[]): ChainEvent[] {
  const before = others.filter(({ isFirst }) => isFirst).map(({ event }) => event)
  const after = others.filter(({ isFirst }) => !isFirst).map(({ event }) => event)
  return [...before, own, ...after]
}
