import { createManualClock, type ManualClock } from '../core/clock.ts'
import { createSeededRandom } from '../core/random.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import type { LocalChain } from './chain/chain.ts'
import type { Account } from './chain/model.ts'
import { startChain } from './chain/start.ts'
import { type ChainKeys, createChainKeys } from './genesis/keys.ts'
import { type LocalnetOptionsInput, parseLocalnetOptions } from './options.ts'

export type TestChain = { readonly chain: LocalChain; readonly clock: ManualClock }

/** A chain in memory whose slots advance only with the manual clock or `produceBlock`. Keys are derived from the seed. */
export async function startTestChain(
  input: LocalnetOptionsInput = {},
  { fixtures = [], seed = 1 }: { fixtures?: Iterable<readonly [string, Account]>; seed?: number } = {},
): Promise<TestChain & AsyncDisposable> {
  const clock = createManualClock()
  const start = { keys: testKeys(seed), fixtures }
  const deps = { clock, random: createSeededRandom(seed), log: silentLogger }
  const chain = await startChain(parseLocalnetOptions(input), start, deps)
  return { chain, clock, [Symbol.asyncDispose]: () => chain[Symbol.asyncDispose]() }
}

export function testKeys(seed = 1): ChainKeys {
  const random = createSeededRandom(seed)
  return createChainKeys(() => random.bytes(32))
}
