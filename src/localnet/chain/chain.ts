import type { Clock } from '../../core/clock.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { type EngineProcess, startEngineProcess } from '../engine/process.ts'
import type { EngineRequest, ExecuteReply, SimulateReply } from '../engine/protocol.ts'
import { loadRequests, refillRequests } from '../engine/refill.ts'
import { minimumBalance } from '../engine/sysvars.ts'
import { textKey, toAccount, toMeta } from '../engine/values.ts'
import type { ChainKeys } from '../genesis/keys.ts'
import type { LocalnetOptions } from '../options.ts'
import { type AdmissionView, admit } from './admission.ts'
import { buildAirdrop } from './airdrop.ts'
import { Bank, type Head } from './bank.ts'
import { packBlock } from './block-codec.ts'
import { BLOCKHASH_AGE_MAX, isRecent } from './blockhash-queue.ts'
import type {
  Account,
  Block,
  Blockhash,
  Chain,
  ChainEvent,
  Commitment,
  PerformanceSample,
  Simulation,
  SubmitOutcome,
  TransactionError,
  TransactionRecord,
} from './model.ts'
import { type ChainState, createGenesisState } from './state.ts'
import type { ChainStore } from './store.ts'
import { startTicker } from './ticker.ts'

export type ChainDeps = BaseDeps & {
  /** Persists blocks and snapshots; without it the chain lives in memory. */
  readonly store?: ChainStore | undefined
}

export type ChainStart = {
  readonly keys: ChainKeys
  /** The state to continue from; without it a new chain is created. */
  readonly state?: ChainState | undefined
  /** Accounts of a new chain's genesis. A continued chain adds those it does not have. */
  readonly fixtures?: Iterable<readonly [string, Account]> | undefined
}

/** Loads the chain's state into an engine, opens the next slot and produces blocks until the chain is disposed. */
export async function startChain(options: LocalnetOptions, start: ChainStart, deps: ChainDeps): Promise<LocalChain> {
  const { clock, log, store } = deps
  const { keys, fixtures = [] } = start
  let refill: () => Iterable<EngineRequest> = () => []
  await using opening = new AsyncDisposableStack()
  const engine = opening.use(await startEngineProcess({ clock, random: deps.random, log, refill: () => refill() }))
  const state = start.state ?? (await createState())
  const chain = new LocalChain(options, { keys, state, engine, clock, store })
  if (start.state) chain.addMissingAccounts(fixtures)
  refill = () => chain.engineRefillRequests()
  await chain.start()
  // From here on the chain disposes the engine.
  opening.move()
  return chain

  async function createState(): Promise<ChainState> {
    const genesis = await createGenesisState(options, { keys, fixtures, clock, engine })
    await store?.begin(genesis.state, genesis.block, options.ticksPerSlot)
    return genesis.state
  }
}

type LocalChainDeps = {
  readonly keys: ChainKeys
  readonly state: ChainState
  readonly engine: EngineProcess
  readonly clock: Clock
  readonly store: ChainStore | undefined
}

/** The chain with the calls of its owner: disposal, and block production in tests. */
export class LocalChain implements Chain, AsyncDisposable {
  readonly genesisHash: string
  readonly identity: string
  readonly voteAccount: string
  readonly faucet: string
  readonly slotMs: number
  readonly slotsPerEpoch: number
  readonly startedAtMs: number
  readonly minimumBalance = minimumBalance
  readonly #options: LocalnetOptions
  readonly #deps: LocalChainDeps
  readonly #engine: EngineProcess
  readonly #state: ChainState
  readonly #bank: Bank
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
    this.slotMs = options.slotMs
    this.slotsPerEpoch = options.slotsPerEpoch
    this.startedAtMs = deps.clock.nowMs()
    const { identity, slotsPerEpoch } = this
    const bank = new Bank({ identity, slotsPerEpoch, ticksPerSlot: options.ticksPerSlot }, state, state.head)
    this.#bank = bank
    this.#admissionView = {
      blockhashes: state.blockhashes,
      get headHeight() {
        return bank.head.height
      },
      isKnown: (signature) => this.#unfrozen.has(signature) || state.ledger.has(signature),
    }
    bank.open(this.#unixSeconds())
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
    this.#ticker = startTicker(this.slotMs, { clock: this.#deps.clock, tick: () => this.#tick() })
  }

  /** Ends the open slot now, without waiting for the clock. */
  produceBlock(): Promise<Block> {
    const { promise, resolve } = Promise.withResolvers<Block>()
    this.#blockWaiters.push(resolve)
    this.#tick()
    return promise
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
      const block = this.#freezeBlock()
      this.#openNextSlot(block)
      this.#engine.resume()
      this.#announce(block)
      this.#isFreezing = false
      for (const resolve of this.#blockWaiters.splice(0)) resolve(block)
      if (this.#ticksDue > 0) this.#endSlot()
    })
  }

  #freezeBlock(): Block {
    const bank = this.#bank
    const block = bank.freeze()
    const packed = packBlock(block, bank.head, this.#options.ticksPerSlot)
    this.#state.ledger.add(block, packed.core)
    this.#deps.store?.append(packed, this.#state, bank.head)
    for (const { signature } of block.transactions) this.#unfrozen.delete(signature)
    this.#airdrops.clear()
    return block
  }

  #openNextSlot({ systemWrites }: Block): void {
    this.#bank.open(this.#unixSeconds())
    const leaderWrites = systemWrites.flatMap(({ address, account }) =>
      address === this.identity && account ? [[address, account] as const] : [],
    )
    void this.#engine.fill([...loadRequests(leaderWrites), { op: 'open', slot: this.#bank.openSlot('next') }])
  }

  #announce(block: Block): void {
    const { ledger, accounts } = this.#state
    const { confirmedSlots, finalizedSlots } = this.#options.commitment
    this.#emit({ kind: 'frozen', block })
    const confirmed = ledger.block(block.slot - confirmedSlots)
    if (confirmed) this.#emit({ kind: 'confirmed', block: confirmed })
    const finalized = ledger.block(block.slot - finalizedSlots)
    if (finalized) {
      accounts.root(finalized.slot)
      this.#emit({ kind: 'finalized', block: finalized })
    }
    this.#emit({ kind: 'opened', slot: this.#bank.slot, parentSlot: block.slot })
  }

  #emit(event: ChainEvent): void {
    for (const listener of this.#listeners) listener(event)
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
    const admission = admit(wire, this.#admissionView, { replaceBlockhash })
    if (!admission.ok) return Promise.resolve(failedSimulation(admission.err, replacementBlockhash))
    if (this.#isQueueFull) return Promise.resolve('engine-down')
    const { transaction, nonce } = admission
    this.#pending++
    const { promise, resolve } = Promise.withResolvers<Simulation | 'engine-down'>()
    this.#engine.send({ op: 'simulate', wire, nonce, verifySignatures }, (reply) => {
      this.#pending--
      const simulated = reply as SimulateReply | 'engine-down'
      if (simulated === 'engine-down') return resolve(simulated)
      const { meta, loadedAccountsDataSize } = simulated
      const keys = [...transaction.staticKeys, ...meta.loadedWritable, ...meta.loadedReadonly]
      const postAccounts = new Map<string, Account | null>()
      simulated.postAccounts.forEach((account, index) => {
        postAccounts.set(textKey(keys[index] as Uint8Array), account && toAccount(account))
      })
      resolve({ err: meta.err, meta: toMeta(meta), postAccounts, loadedAccountsDataSize, replacementBlockhash })
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
    const { slot } = this.#bank.head
    if (commitment === 'processed') return slot
    const { confirmedSlots, finalizedSlots } = this.#options.commitment
    return Math.max(0, slot - (commitment === 'confirmed' ? confirmedSlots : finalizedSlots))
  }

  openSlot(): number {
    return this.#bank.slot
  }

  firstAvailableSlot(): number {
    return this.#state.ledger.firstSlot
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

  block(slot: number): Block | undefined {
    return slot <= this.#bank.head.slot ? this.#state.ledger.block(slot) : undefined
  }

  transaction(signature: string): TransactionRecord | undefined {
    return this.#state.ledger.transaction(signature)
  }

  signaturesOf(address: string): Iterable<TransactionRecord> {
    return this.#state.ledger.signaturesOf(address)
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

  lastValidHeight(blockhash: string, commitment: Commitment): number | undefined {
    const height = this.#state.blockhashes.heightOf(blockhash)
    if (height === undefined || !isRecent(height, this.#blockAt(commitment).height)) return undefined
    return height + BLOCKHASH_AGE_MAX
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
    await this.#deps.store?.finish(this.#state, this.#bank.head)
  }

  #blockAt(commitment: Commitment): Block {
    return this.#state.ledger.block(this.slot(commitment)) as Block
  }

  #unixSeconds(): number {
    return Math.floor(this.#deps.clock.nowMs() / 1000)
  }
}

function rejected(err: TransactionError): SubmitOutcome {
  return { ok: false, reason: 'rejected', err }
}

function failedSimulation(err: TransactionError, replacementBlockhash: Simulation['replacementBlockhash']): Simulation {
  const meta = {
    err,
    fee: 0n,
    preBalances: [],
    postBalances: [],
    preTokenBalances: [],
    postTokenBalances: [],
    innerInstructions: [],
    logMessages: [],
    loadedAddresses: { writable: [], readonly: [] },
    computeUnitsConsumed: 0n,
    returnData: null,
  }
  return { err, meta, postAccounts: new Map(), loadedAccountsDataSize: 0, replacementBlockhash }
}
