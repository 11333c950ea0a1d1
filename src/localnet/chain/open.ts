import { join } from 'node:path'
import type { Random } from '../../core/random.ts'
import { readFixtures } from '../genesis/fixtures.ts'
import { openKeyFile } from '../genesis/key-files.ts'
import { type ChainKeys, createChainKeys, KEY_NAMES } from '../genesis/keys.ts'
import { type LocalnetOptions, ledgerLimitsOf } from '../options.ts'
import type { LocalChain } from './chain.ts'
import { type ChainDeps, startChain } from './start.ts'
import { ChainStore } from './store.ts'

export type OpenedChain = AsyncDisposable & { readonly chain: LocalChain; readonly keys: ChainKeys }

/** Continues the chain of the state folder, or creates one there. Without a folder a new chain lives in memory. */
export async function openChain(options: LocalnetOptions, deps: Omit<ChainDeps, 'store'>): Promise<OpenedChain> {
  const { stateDir, accountsDir } = options
  const fixtures = accountsDir === undefined ? [] : readFixtures(accountsDir)
  if (stateDir === undefined) {
    const keys = createChainKeys(() => deps.random.bytes(32))
    const chain = await startChain(options, { keys, fixtures }, deps)
    return { chain, keys, [Symbol.asyncDispose]: () => chain[Symbol.asyncDispose]() }
  }

  await using opening = new AsyncDisposableStack()
  const keys = await openKeys(join(stateDir, 'keys'), deps.random)
  const store = opening.use(new ChainStore(stateDir, deps))
  const state = store.recover({
    ledger: ledgerLimitsOf(options.limits),
    finalizedSlots: options.commitment.finalizedSlots,
    slotsPerEpoch: options.slotsPerEpoch,
  })
  if (state)
    deps.log.info({ slot: state.head.slot, genesisHash: state.genesisHash }, 'chain continued from its last block')
  const chain = opening.use(await startChain(options, { keys, fixtures, state }, { ...deps, store }))
  const opened = opening.move()
  return { chain, keys, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

async function openKeys(dir: string, random: Random): Promise<ChainKeys> {
  const [identity, vote, stake, faucet] = await Promise.all(KEY_NAMES.map((name) => openKeyFile(dir, name, random)))
  return { identity, vote, stake, faucet } as ChainKeys
}
