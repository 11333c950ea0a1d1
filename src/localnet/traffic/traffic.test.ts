import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../core/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { startTestChain } from '../test-chain.ts'
import { startTraffic } from './traffic.ts'

test('sends lamport and token transfers, memos and some failing transactions', async () => {
  await using host = await startTestChain()
  const { chain, clock } = host
  const deps = { chain, clock, random: createSeededRandom(3), log: silentLogger, secret: new Uint8Array(32).fill(4) }
  using traffic = startTraffic({ tps: 50 }, deps)
  await until('250 transactions have landed', () => {
    clock.advance(100)
    return traffic.landed() >= 250
  })
  await chain.produceBlock()

  const records = Array.from(
    { length: chain.slot('processed') },
    (_, i) => chain.block(i + 1)?.transactions ?? [],
  ).flat()
  const count = (matches: (record: (typeof records)[number]) => boolean) => records.filter(matches).length
  const failed = count(({ meta }) => meta.err !== null)
  assert(failed > 0 && failed < records.length / 5, `${failed} of ${records.length} failed`)
  assert(count(({ meta }) => meta.preTokenBalances.length > 0) > 20)
  assert(count(({ meta }) => meta.logMessages.some((line) => line.includes('hello from localnet'))) > 5)
  // Tokens are only transferred: the supply is unchanged.
  const mints = new Set(records.flatMap(({ meta }) => meta.postTokenBalances.map(({ mint }) => mint)))
  assert.equal(mints.size, 1)
})

test('a rate of 0 sends nothing', async () => {
  await using host = await startTestChain()
  const { chain, clock } = host
  using traffic = startTraffic(
    { tps: 0 },
    { chain, clock, random: createSeededRandom(3), log: silentLogger, secret: new Uint8Array(32) },
  )
  clock.advance(5000)
  assert.equal(traffic.landed(), 0)
  assert.equal(chain.transactionCount('processed'), 0)
})
