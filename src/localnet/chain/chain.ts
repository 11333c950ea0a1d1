import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { startEngineProcess } from '../engine/process.ts'
import type { EngineRequest, ExecuteReply, SimulateReply } from '../engine/protocol.ts'
import { minimumBalance } from '../engine/sysvars.ts'
import { textKey, toAccount, toMeta } from '../engine/values.ts'
import type { ChainKeys } from '../genesis/keys.ts'
import { loadRequests, refillRequests } from '../genesis/refill.ts'
import type { LocalnetOptions } from '../options.ts'
import { createLeaderSchedule } from '../shreds/leader.ts'
import { admit } from './admission.ts'
import { buildAirdrop } from './airdrop.ts'
import { Bank } from './bank.ts'
import { packBlock } from './block-codec.ts'
import { BLOCKHASH_AGE_MAX, isRecent } from './blockhash-queue.ts'
import type {
  Account,
  Block,
  Chain,
  ChainEvent,
  Commitment,
  Simulation,
  SubmitOutcome,
  TransactionError,
} from './model.ts'
import { createNewState } from './new-state.ts'
import type { ChainState } from './state.ts'
import type { ChainStore } from './store.ts'
import { startTicker } from './ticker.ts'

export type ChainDeps = {
  readonly clock: Clock
  readonly log: Logger
  /** Where blocks are kept beyond this process. */
  readonly store?: ChainStore | undefined
}

/** The chain as its owner has it: it also ends it, and in tests drives its slots. */
export interface LocalChain extends Chain, AsyncDisposable {
  /** Ends the open slot now, without waiting for the clock. */
  produceBlock(): Promise<Block>
  enginePid(): number | undefined
  engineRestarts(): number
}

export type ChainStart = {
  readonly keys: ChainKeys
  /** The chain to go on with; without it a new one begins, */
  readonly state?: ChainState | undefined
  /** Accounts a new chain begins with beside its own. One that goes on gets those it does not have. */
  readonly fixtures?: Iterable<readonly [string, Account]> | undefined
}

/** Fills an engine with the chain's state, opens the next slot and keeps producing blocks until it is disposed. */
export async function startChain(options: LocalnetOptions, start: ChainStart, deps: ChainDeps): Promise<LocalChain> {
  const { clock, log, store } = deps
  const { keys } = start
  await using opening = new AsyncDisposableStack()
  let refill: () => Iterable<EngineRequest> = () => []
  const engine = opening.use(await startEngineProcess({ clock, log, refill: () => refill() }))
  const state = start.state ?? (await beginChain())
  const { accounts, ledger, blockhashes } = state
  const identity = encodeBase58(keys.identity.publicKey)
  const bank = new Bank(
    { identity, slotsPerEpoch: options.slotsPerEpoch, ticksPerSlot: options.ticksPerSlot },
    state,
    state.head,
  )
  const schedule = createLeaderSchedule({ identity })
  const listeners = new Set<(event: ChainEvent) => void>()
  /** Signatures on their way or landed in the open slot; the ledger knows the others. */
  const unfrozen = new Set<string>()
  let pending = 0
  let beatsDue = 0
  let freezing = false
  /** Airdrops under the newest blockhash: how many of each recipient and amount there were. */
  const airdrops = new Map<string, number>()
  const onBlock: ((block: Block) => void)[] = []

  bank.open(unixSeconds())
  if (start.state) addMissing(start.fixtures ?? [])
  refill = () => refillRequests(accounts.allNewest(), bank.openSlot('new'))
  await engine.fill(refill())
  opening.use(startTicker(options.slotMs, { clock, beat }))

  async function beginChain(): Promise<ChainState> {
    const { fixtures = [] } = start
    const begun = await createNewState(options, { keys, fixtures, clock, engine })
    await store?.begin(begun.state, begun.block, options.ticksPerSlot)
    return begun.state
  }

  function addMissing(fixtures: Iterable<readonly [string, Account]>): void {
    for (const [address, account] of fixtures) if (!accounts.readNewest(address)) bank.writeSystem(address, account)
  }

  function unixSeconds(): number {
    return Math.floor(clock.nowMs() / 1000)
  }

  function beat(): void {
    beatsDue++
    if (!freezing) endSlot()
  }

  /** Waits until the engine has nothing of this slot in hand, freezes the block and opens the next slot. */
  function endSlot(): void {
    freezing = true
    beatsDue--
    engine.pause(() => {
      const block = bank.freeze()
      const packed = packBlock(block, bank.head, options.ticksPerSlot)
      ledger.add(block, packed.core)
      store?.append(packed, state, bank.head)
      for (const { signature } of block.transactions) unfrozen.delete(signature)
      airdrops.clear()
      bank.open(unixSeconds())
      const paid = block.systemWrites.flatMap(({ address, account }) =>
        address === identity && account ? [[address, account] as const] : [],
      )
      void engine.fill([...loadRequests(paid), { op: 'open', slot: bank.openSlot('next') }])
      engine.resume()
      announce(block)
      freezing = false
      for (const resolve of onBlock.splice(0)) resolve(block)
      if (beatsDue > 0) endSlot()
    })
  }

  function announce(block: Block): void {
    emit({ kind: 'frozen', block })
    const confirmed = ledger.block(block.slot - options.commitment.confirmedSlots)
    if (confirmed) emit({ kind: 'confirmed', block: confirmed })
    const finalized = ledger.block(block.slot - options.commitment.finalizedSlots)
    if (finalized) {
      accounts.root(finalized.slot)
      emit({ kind: 'finalized', block: finalized })
    }
    emit({ kind: 'opened', slot: bank.slot, parentSlot: block.slot })
  }

  function emit(event: ChainEvent): void {
    for (const listener of listeners) listener(event)
  }

  function slotAt(commitment: Commitment): number {
    const { slot } = bank.head
    if (commitment === 'processed') return slot
    const { confirmedSlots, finalizedSlots } = options.commitment
    return Math.max(0, slot - (commitment === 'confirmed' ? confirmedSlots : finalizedSlots))
  }

  const admissionView = {
    blockhashes,
    get headHeight() {
      return bank.head.height
    },
    isKnown: (signature: string) => unfrozen.has(signature) || ledger.has(signature),
  }

  function submit(given: Uint8Array): Promise<SubmitOutcome> {
    const wire = new Uint8Array(given)
    const admission = admit(wire, admissionView)
    if (!admission.ok) return Promise.resolve(rejected(admission.err))
    if (pending >= options.limits.pendingMax || bank.isFull) return Promise.resolve({ ok: false, reason: 'queue-full' })
    const { signature, transaction, nonce } = admission
    unfrozen.add(signature)
    pending++
    const { promise, resolve } = Promise.withResolvers<SubmitOutcome>()
    engine.send({ op: 'execute', wire, nonce }, (reply) => {
      pending--
      const executed = reply as ExecuteReply | 'engine-down'
      if (executed !== 'engine-down' && executed.landed) {
        bank.record(wire, transaction, executed)
        return resolve({ ok: true, signature })
      }
      unfrozen.delete(signature)
      resolve(executed === 'engine-down' ? { ok: false, reason: 'engine-down' } : rejected(executed.err))
    })
    return promise
  }

  function simulate(
    given: Uint8Array,
    { verifySignatures, replaceBlockhash }: { readonly verifySignatures: boolean; readonly replaceBlockhash: boolean },
  ): Promise<Simulation | 'engine-down'> {
    const wire = new Uint8Array(given)
    const replacementBlockhash = replaceBlockhash ? chain.latestBlockhash('processed') : null
    const admission = admit(wire, admissionView, { replaceBlockhash })
    if (!admission.ok) return Promise.resolve(failedSimulation(admission.err, replacementBlockhash))
    if (pending >= options.limits.pendingMax) return Promise.resolve('engine-down')
    const { transaction, nonce } = admission
    pending++
    const { promise, resolve } = Promise.withResolvers<Simulation | 'engine-down'>()
    engine.send({ op: 'simulate', wire, nonce, verifySignatures }, (reply) => {
      pending--
      const simulated = reply as SimulateReply | 'engine-down'
      if (simulated === 'engine-down') return resolve(simulated)
      const { meta } = simulated
      const keys = [...transaction.staticKeys, ...meta.loadedWritable, ...meta.loadedReadonly]
      const postAccounts = new Map<string, Account | null>()
      simulated.postAccounts.forEach((account, index) => {
        postAccounts.set(textKey(keys[index] as Uint8Array), account && toAccount(account))
      })
      const { loadedAccountsDataSize } = simulated
      resolve({ err: meta.err, meta: toMeta(meta), postAccounts, loadedAccountsDataSize, replacementBlockhash })
    })
    return promise
  }

  function airdrop(address: string, lamports: bigint): Promise<SubmitOutcome> {
    const recentBlockhash = decodeBase58(bank.head.blockhash)
    const repetition = airdrops.get(`${address} ${lamports}`) ?? 0
    airdrops.set(`${address} ${lamports}`, repetition + 1)
    return submit(
      buildAirdrop({
        faucet: keys.faucet,
        to: decodeBase58(address),
        lamports,
        recentBlockhash,
        repetition,
      }),
    )
  }

  const chain: LocalChain = {
    genesisHash: state.genesisHash,
    identity,
    voteAccount: encodeBase58(keys.vote.publicKey),
    faucet: encodeBase58(keys.faucet.publicKey),
    slotMs: options.slotMs,
    slotsPerEpoch: options.slotsPerEpoch,
    startedAtMs: clock.nowMs(),
    slot: slotAt,
    openSlot: () => bank.slot,
    firstAvailableSlot: () => ledger.firstSlot,
    transactionCount(commitment) {
      let count = bank.head.transactionCount
      for (let slot = bank.head.slot; slot > slotAt(commitment); slot--)
        count -= ledger.block(slot)?.transactions.length ?? 0
      return count
    },
    block: (slot) => (slot <= bank.head.slot ? ledger.block(slot) : undefined),
    transaction: (signature) => ledger.transaction(signature),
    signaturesOf: (address) => ledger.signaturesOf(address),
    account: (address, commitment) => accounts.read(address, slotAt(commitment)),
    accountsOwnedBy: (owner, commitment) => accounts.ownedBy(owner, slotAt(commitment)),
    allAccounts: (commitment) => accounts.all(slotAt(commitment)),
    latestBlockhash(commitment) {
      const { blockhash, height } = ledger.block(slotAt(commitment)) as Block
      return { blockhash, lastValidBlockHeight: height + BLOCKHASH_AGE_MAX }
    },
    lastValidHeight(blockhash, commitment) {
      const height = blockhashes.heightOf(blockhash)
      const atHeight = (ledger.block(slotAt(commitment)) as Block).height
      return height !== undefined && isRecent(height, atHeight) ? height + BLOCKHASH_AGE_MAX : undefined
    },
    minimumBalance,
    leaderOf: schedule.leaderOf,
    submit,
    simulate,
    airdrop,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    produceBlock() {
      const { promise, resolve } = Promise.withResolvers<Block>()
      onBlock.push(resolve)
      beat()
      return promise
    },
    enginePid: () => engine.pid(),
    engineRestarts: () => engine.restarts(),
    async [Symbol.asyncDispose]() {
      await opened.disposeAsync()
      await store?.finish(state, bank.head)
    },
  }
  const opened = opening.move()
  return chain
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
