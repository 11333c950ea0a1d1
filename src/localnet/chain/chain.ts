import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { Commitments } from '../consensus/commitments.ts'
import { SlotBanks } from '../consensus/slot-banks.ts'
import type { EngineProcess } from '../engine/process.ts'
import type { EngineRequest, ExecuteReply, SimulateReply } from '../engine/protocol.ts'
import { loadRequests, refillRequests } from '../engine/refill.ts'
import { minimumBalance } from '../engine/sysvars.ts'
import type { ChainKeys } from '../genesis/keys.ts'
import type { Consensus, LocalnetOptions } from '../options.ts'
import { type AdmissionView, admit } from './admission.ts'
import { buildAirdrop } from './airdrop.ts'
import { Bank, type Head } from './bank.ts'
import { packBlock } from './block-codec.ts'
import { BLOCKHASH_AGE_MAX, SIMULATION_AGE_MAX } from './blockhash-queue.ts'
import type {
  Account,
  AlpenglowGenesis,
  Block,
  Blockhash,
  Chain,
  ChainEvent,
  Commitment,
  PerformanceSample,
  Simulation,
  SubmitOutcome,
  TransactionError,
  TransactionPosition,
  TransactionRecord,
} from './model.ts'
import { failedSimulation, toSimulation } from './simulate.ts'
import { type ChainState, rootFinalized } from './state.ts'
import type { ChainStore } from './store.ts'
import { startTicker } from './ticker.ts'

type LocalChainDeps = {
  readonly keys: ChainKeys
  readonly state: ChainState
  readonly engine: EngineProcess
  readonly clock: Clock
  readonly random: Random
  readonly store: ChainStore | undefined
}

type ChainSettings = { readonly slotMs: number; readonly consensus: Consensus }

/** The chain with the calls of its owner: disposal, and block production in tests. */
export class LocalChain implements Chain, AsyncDisposable {
  readonly genesisHash: string
  readonly identity: string
  readonly voteAccount: string
  readonly faucet: string
  readonly slotsPerEpoch: number
  readonly startedAtMs: number
  readonly minimumBalance = minimumBalance
  readonly #options: LocalnetOptions
  readonly #deps: LocalChainDeps
  readonly #engine: EngineProcess
  readonly #state: ChainState
  readonly #bank: Bank
  readonly #banks: SlotBanks
  readonly #commitments: Commitments
  readonly #admissionView: AdmissionView
  readonly #listeners = new Set<(event: ChainEvent) => void>()
  readonly #blockWaiters: ((block: Block) => void)[] = []
  /** Signatures being executed or landed in the open slot; older ones are in the ledger. */
  readonly #unfrozen = new Set<string>()
  /** Number of airdrops per recipient and amount under the newest blockhash. */
  readonly #airdrops = new Map<string, number>()
  /** Requests the engine has not replied to. */
  #pending = 0
  #ticksDue = 0
  #isFreezing = false
  /** Resolves when the candidates of the slot that ends are done. */
  #candidatesDone: Promise<void> | undefined
  /** The settings of the open slot and of the next one. */
  #settings: ChainSettings
  #nextSettings: ChainSettings
  #ticker: Disposable | undefined

  constructor(options: LocalnetOptions, deps: LocalChainDeps) {
    const { keys, state } = deps
    this.#options = options
    this.#deps = deps
    this.#engine = deps.engine
    this.#state = state
    this.genesisHash = state.genesisHash
    this.identity = encodeBase58(keys.identity.publicKey)
    this.voteAccount = encodeBase58(keys.vote.publicKey)
    this.faucet = encodeBase58(keys.faucet.publicKey)
    this.slotsPerEpoch = options.slotsPerEpoch
    this.startedAtMs = deps.clock.nowMs()
    const { identity, slotsPerEpoch } = this
    const bankOptions = { identity, slotsPerEpoch, ticksPerSlot: options.ticksPerSlot }
    const bank = new Bank(bankOptions, state, state.head)
    this.#bank = bank
    const { random, engine } = deps
    this.#banks = new SlotBanks(
      { candidatePercent: options.candidateBanksPercent },
      { bank, bankOptions, state, engine, random },
    )
    const finalizedSlot = rootFinalized(state, options.commitment.finalizedSlots)
    this.#commitments = new Commitments(options.commitment, { headSlot: state.head.slot, finalizedSlot, random })
    this.#nextSettings = { slotMs: options.slotMs, consensus: options.consensus }
    this.#settings = this.#nextSettings
    this.#admissionView = {
      blockhashes: state.blockhashes,
      get headHeight() {
        return bank.head.height
      },
      isKnown: (signature) => this.#unfrozen.has(signature) || state.ledger.has(signature),
    }
    this.#openBanks()
  }

  addMissingAccounts(accounts: Iterable<readonly [string, Account]>): void {
    for (const [address, account] of accounts)
      if (!this.#state.accounts.readNewest(address)) this.#bank.writeSystem(address, account)
  }

  engineRefillRequests(): Iterable<EngineRequest> {
    return refillRequests(this.#state.accounts.allNewest(), this.#bank.openSlot('new'))
  }

  async start(): Promise<void> {
    await this.#engine.fill(this.engineRefillRequests())
    this.#ticker = startTicker(() => this.#nextSettings.slotMs, {
      clock: this.#deps.clock,
      tick: () => this.#tick(),
    })
  }

  /** Ends the open slot now, without waiting for the clock. */
  produceBlock(): Promise<Block> {
    const { promise, resolve } = Promise.withResolvers<Block>()
    this.#blockWaiters.push(resolve)
    this.#tick()
    return promise
  }

  get slotMs(): number {
    return this.#settings.slotMs
  }

  get consensus(): Consensus {
    return this.#settings.consensus
  }

  /** The settings of the slot after the open one. */
  get nextSettings(): ChainSettings {
    return this.#nextSettings
  }

  /** From the next slot on. */
  setSlotMs(slotMs: number): void {
    this.#nextSettings = { ...this.#nextSettings, slotMs }
  }

  /** From the next slot on. */
  setConsensus(consensus: Consensus): void {
    this.#nextSettings = { ...this.#nextSettings, consensus }
  }

  #tick(): void {
    this.#ticksDue++
    if (!this.#isFreezing) this.#endSlot()
  }

  /** Waits until the engine has no request of this slot, freezes the block and opens the next slot. */
  #endSlot(): void {
    this.#isFreezing = true
    this.#ticksDue--
    this.#engine.pause(() => {
      if (!this.#banks.hasCandidates) return this.#finishSlot()
      this.#candidatesDone = this.#banks.freezeCandidates(this.#deps.clock.nowMs()).then(() => this.#finishSlot())
    })
  }

  #finishSlot(): void {
    this.#candidatesDone = undefined
    const parent = this.#bank.head
    const block = this.#freezeBlock()
    const frozen = this.#banks.frozen(block, parent)
    const steps = this.#commitments.advance(block.slot, this.consensus)
    this.#openNextSlot(block)
    this.#engine.resume()
    this.#emit(frozen)
    for (const step of steps) {
      if (step.kind === 'finalized') this.#state.accounts.root(step.slot)
      const settled = this.#state.ledger.block(step.slot)
      if (settled) this.#emit(this.#banks.settled(step, settled))
    }
    this.#emit(this.#banks.opened)
    this.#isFreezing = false
    for (const resolve of this.#blockWaiters.splice(0)) resolve(block)
    if (this.#ticksDue > 0) this.#endSlot()
  }

  #freezeBlock(): Block {
    const bank = this.#bank
    const block = bank.freeze(this.#deps.clock.nowMs())
    const packed = packBlock(block, bank.head, this.#options.ticksPerSlot)
    this.#state.ledger.add(block, packed.core)
    this.#deps.store?.append(packed, this.#state, bank.head)
    for (const { signature } of block.transactions) this.#unfrozen.delete(signature)
    this.#airdrops.clear()
    return block
  }

  #openNextSlot({ systemWrites }: Block): void {
    this.#settings = this.#nextSettings
    this.#openBanks()
    const leaderWrites = systemWrites.flatMap(({ address, account }) =>
      address === this.identity && account ? [[address, account] as const] : [],
    )
    void this.#engine.fill([...loadRequests(leaderWrites), { op: 'open', slot: this.#bank.openSlot('next') }])
  }

  #openBanks(): void {
    this.#bank.open(Math.floor(this.#deps.clock.nowMs() / 1000), this.consensus)
    this.#banks.open(this.#commitments.slot('finalized'))
  }

  #emit(events: readonly ChainEvent[]): void {
    for (const event of events) for (const listener of this.#listeners) listener(event)
  }

  subscribe(listener: (event: ChainEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  submit(bytes: Uint8Array): Promise<SubmitOutcome> {
    const wire = new Uint8Array(bytes)
    const admission = admit(wire, this.#admissionView)
    if (!admission.ok) return Promise.resolve(rejected(admission.err))
    if (this.#isQueueFull || this.#bank.isFull) return Promise.resolve({ ok: false, reason: 'queue-full' })
    const { signature, transaction, nonce } = admission
    if (this.#unfrozen.has(signature)) return Promise.resolve(rejected('AlreadyProcessed'))
    this.#unfrozen.add(signature)
    this.#pending++
    const { promise, resolve } = Promise.withResolvers<SubmitOutcome>()
    this.#engine.send({ op: 'execute', wire, nonce }, (reply) => {
      this.#pending--
      const executed = reply as ExecuteReply | 'engine-down'
      if (executed !== 'engine-down' && executed.landed) {
        this.#bank.record(wire, transaction, executed)
        return resolve({ ok: true, signature })
      }
      this.#unfrozen.delete(signature)
      resolve(executed === 'engine-down' ? { ok: false, reason: 'engine-down' } : rejected(executed.err))
    })
    return promise
  }

  simulate(
    bytes: Uint8Array,
    { verifySignatures, replaceBlockhash }: { readonly verifySignatures: boolean; readonly replaceBlockhash: boolean },
  ): Promise<Simulation | 'engine-down'> {
    const wire = new Uint8Array(bytes)
    const replacementBlockhash = replaceBlockhash ? this.latestBlockhash('processed') : null
    const admission = admit(wire, this.#admissionView, { replaceBlockhash, ageMax: SIMULATION_AGE_MAX })
    if (!admission.ok) return Promise.resolve(failedSimulation(admission.err, replacementBlockhash))
    if (this.#isQueueFull) return Promise.resolve('engine-down')
    const { transaction, nonce } = admission
    this.#pending++
    const { promise, resolve } = Promise.withResolvers<Simulation | 'engine-down'>()
    this.#engine.send({ op: 'simulate', wire, nonce, verifySignatures }, (reply) => {
      this.#pending--
      const simulated = reply as SimulateReply | 'engine-down'
      resolve(simulated === 'engine-down' ? simulated : toSimulation(simulated, transaction, replacementBlockhash))
    })
    return promise
  }

  airdrop(address: string, lamports: bigint): Promise<SubmitOutcome> {
    const recentBlockhash = decodeBase58(this.#bank.head.blockhash)
    const repetition = this.#airdrops.get(`${address} ${lamports}`) ?? 0
    this.#airdrops.set(`${address} ${lamports}`, repetition + 1)
    const { faucet } = this.#deps.keys
    return this.submit(buildAirdrop({ faucet, to: decodeBase58(address), lamports, recentBlockhash, repetition }))
  }

  /** The newest frozen block, with its bank hash. */
  get head(): Head {
    return this.#bank.head
  }

  get #isQueueFull(): boolean {
    return this.#pending >= this.#options.limits.pendingMax
  }

  slot(commitment: Commitment): number {
    return commitment === 'processed' ? this.#bank.head.slot : this.#commitments.slot(commitment)
  }

  openSlot(): number {
    return this.#bank.slot
  }

  openBanks(): readonly ChainEvent[] {
    return this.#banks.opened
  }

  alpenglowGenesis(): AlpenglowGenesis | undefined {
    return this.#bank.head.alpenglowGenesis
  }

  firstAvailableSlot(): number {
    return this.#state.ledger.firstSlot
  }

  firstSlotWithWrites(): number {
    return this.#state.ledger.firstSlotWithWrites
  }

  transactionCount(commitment: Commitment): number {
    const { head } = this.#bank
    let count = head.transactionCount
    for (let slot = head.slot; slot > this.slot(commitment); slot--)
      count -= this.#state.ledger.block(slot)?.transactions.length ?? 0
    return count
  }

  performanceSamples(limit: number): readonly PerformanceSample[] {
    return this.#state.ledger.samples.newest(limit)
  }

  hasBlock(slot: number): boolean {
    return slot <= this.#bank.head.slot && this.#state.ledger.hasBlock(slot)
  }

  block(slot: number): Block | undefined {
    return slot <= this.#bank.head.slot ? this.#state.ledger.block(slot) : undefined
  }

  transaction(signature: string): TransactionRecord | undefined {
    return this.#state.ledger.transaction(signature)
  }

  signaturesOf(address: string, before?: TransactionPosition): Iterable<TransactionRecord> {
    return this.#state.ledger.signaturesOf(address, before)
  }

  account(address: string, commitment: Commitment): Account | null {
    return this.#state.accounts.read(address, this.slot(commitment))
  }

  accountsOwnedBy(owner: string, commitment: Commitment): Iterable<readonly [string, Account]> {
    return this.#state.accounts.ownedBy(owner, this.slot(commitment))
  }

  allAccounts(commitment: Commitment): Iterable<readonly [string, Account]> {
    return this.#state.accounts.all(this.slot(commitment))
  }

  latestBlockhash(commitment: Commitment): Blockhash {
    const { blockhash, height } = this.#blockAt(commitment)
    return { blockhash, lastValidBlockHeight: height + BLOCKHASH_AGE_MAX }
  }

  blockhashAge(blockhash: string, commitment: Commitment): number | undefined {
    return this.#state.blockhashes.ageAt(blockhash, this.#blockAt(commitment).height)
  }

  /** The chain has one validator, so every slot has the same leader. */
  leaderOf(_slot: number): string {
    return this.identity
  }

  enginePid(): number | undefined {
    return this.#engine.pid()
  }

  engineRestarts(): number {
    return this.#engine.restarts()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ticker?.[Symbol.dispose]()
    await this.#engine[Symbol.asyncDispose]()
    while (this.#candidatesDone) await this.#candidatesDone
    await this.#deps.store?.finish(this.#state, this.#bank.head)
  }

  #blockAt(commitment: Commitment): Block {
    return this.#state.ledger.block(this.slot(commitment)) as Block
  }
}

function rejected(err: TransactionError): SubmitOutcome {
  return { ok: false, reason: 'rejected', err }
}
