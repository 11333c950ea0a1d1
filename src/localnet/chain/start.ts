import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { startEngineProcess } from '../engine/process.ts'
import type { EngineRequest } from '../engine/protocol.ts'
import type { ChainKeys } from '../genesis/keys.ts'
import type { LocalnetOptions } from '../options.ts'
import { LocalChain } from './chain.ts'
import type { Account } from './model.ts'
import { type ChainState, createGenesisState } from './state.ts'
import type { ChainStore } from './store.ts'

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
  const chain = new LocalChain(options, { keys, state, engine, clock, random: deps.random, store })
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
