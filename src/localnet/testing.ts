import { createManualClock, type ManualClock } from '../core/clock.ts'
import { createSeededRandom } from '../core/random.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { type LocalChain, startChain } from './chain/chain.ts'
import type { Account } from './chain/model.ts'
import { type ChainKeys, createChainKeys } from './genesis/keys.ts'
import { type LocalnetOptionsInput, parseLocalnetOptions } from './options.ts'

export type TestChain = { readonly chain: LocalChain; readonly clock: ManualClock }

/** A chain in memory whose slots stand still until the manual clock moves or `produceBlock` is called. Keys follow from the seed. */
export async function startTestChain(
  input: LocalnetOptionsInput = {},
  { fixtures = [], seed = 1 }: { fixtures?: Iterable<readonly [string, Account]>; seed?: number } = {},
): Promise<TestChain & AsyncDisposable> {
  const clock = createManualClock()
  const start = { keys: testKeys(seed), fixtures }
  const chain = await startChain(parseLocalnetOptions(input), start, { clock, log: silentLogger })
  return { chain, clock, [Symbol.asyncDispose]: () => chain[Symbol.asyncDispose]() }
}

export function testKeys(seed = 1): ChainKeys {
  const random = createSeededRandom(seed)
  return createChainKeys(() => random.bytes(32))
}
