import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { startTestServer } from '../../../test/support/solana/rpc-server.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { LocalChain } from '../chain/chain.ts'
import { openChain } from '../chain/open.ts'
import { parseLocalnetOptions } from '../options.ts'
import { readVoteState } from '../rpc/parsed/vote.ts'
import { startTestChain, testKeys } from '../test-chain.ts'
import { startVoting } from './voting.ts'

/** Ends slots. What was submitted in a slot reaches the engine on the next turn of the event loop. */
async function produce(chain: LocalChain, blocks: number): Promise<void> {
  for (let i = 0; i < blocks; i++) {
    await chain.produceBlock()
    await nextTurn()
  }
}

function stateOf(chain: LocalChain) {
  return readVoteState(chain.account(chain.voteAccount, 'processed')?.data ?? new Uint8Array(0), chain.voteAccount)
}

/** Every vote of these slots landed without an error, in the slot after the one it is for. */
function assertVoted(chain: LocalChain, from: number, to: number): void {
  for (let slot = from; slot <= to; slot++) {
    assert.deepEqual(
      chain.block(slot)?.transactions.map(({ meta }) => meta.err),
      [null],
      `slot ${slot}`,
    )
  }
  assert.equal(stateOf(chain).votes.at(-1)?.slot, BigInt(to - 1))
}

test('votes advance the vote account over epochs; the validator earns credits in each', async () => {
  await using host = await startTestChain({ slotsPerEpoch: 32 })
  const { chain } = host
  using _voting = startVoting({ chain, keys: testKeys(), log: silentLogger })
  await produce(chain, 100)
  // Block 1 is the first that can be voted for.
  assert.equal(chain.block(1)?.transactions.length, 0)
  assertVoted(chain, 2, 100)
  const { rootSlot, votes, epochCredits } = stateOf(chain)
  assert.deepEqual([rootSlot, votes.length, votes[0]?.confirmationCount], [68n, 31, 31])
  assert.deepEqual(
    epochCredits.map(({ epoch }) => epoch),
    [1n, 2n, 3n],
  )
})

test('a gap in the votes is covered by the next one', async () => {
  await using host = await startTestChain()
  const { chain } = host
  const vote = () => startVoting({ chain, keys: testKeys(), log: silentLogger })
  for (const gap of [2, 40, 600]) {
    const voting = vote()
    await produce(chain, 3)
    assertVoted(chain, chain.slot('processed') - 1, chain.slot('processed'))
    voting[Symbol.dispose]()
    await produce(chain, gap)
  }
})

test('votes go on after a restart', async () => {
  using folder = makeTestFolder()
  const options = parseLocalnetOptions({ stateDir: folder.path })
  for (let start = 0; start < 2; start++) {
    const deps = { clock: createManualClock(), log: silentLogger, random: createSeededRandom(5) }
    await using opened = await openChain(options, deps)
    const { chain, keys } = opened
    using _voting = startVoting({ chain, keys, log: silentLogger })
    const first = chain.slot('processed')
    await produce(chain, 40)
    assertVoted(chain, first + 2, first + 40)
  }
})

test('samples of complete minutes count votes apart from other transactions', async () => {
  await using host = await startTestChain()
  const { chain, clock } = host
  using _voting = startVoting({ chain, keys: testKeys(), log: silentLogger })
  await produce(chain, 3)
  assert.ok((await chain.airdrop(chain.identity, 1n)).ok)
  await produce(chain, 1)
  assert.deepEqual(chain.performanceSamples(10), [])
  clock.advance(60_000)
  await produce(chain, 2)
  const [sample, ...older] = chain.performanceSamples(10)
  assert.deepEqual(older, [])
  assert.ok(sample && sample.slots >= 4)
  assert.equal(sample.transactions - sample.votes, 1)
  assert.ok(sample.votes >= 2)
  assert.deepEqual(chain.performanceSamples(0), [])
})

test('Alpenglow has no votes in blocks, and the validator is not delinquent; back on the tower the votes go on', async () => {
  await using server = await startTestServer({ candidateBanksPercent: 50, consensus: 'tower' })
  const { chain } = server
  using _voting = startVoting({ chain, keys: testKeys(), log: silentLogger })
  await produce(chain, 5)
  chain.setConsensus('alpenglow')
  // The vote for the block before is in the last block of the tower.
  await produce(chain, 1)
  const first = chain.openSlot()
  await produce(chain, 10)
  for (let slot = first; slot < first + 10; slot++)
    assert.deepEqual(chain.block(slot)?.transactions, [], `slot ${slot}`)
  const voters = await server.call<{ current: { lastVote: number }[]; delinquent: unknown[] }>('getVoteAccounts', {
    commitment: 'processed',
    delinquentSlotDistance: 3,
  })
  assert.deepEqual([voters.current[0]?.lastVote, voters.delinquent], [first + 9, []])
  chain.setConsensus('tower')
  await produce(chain, 1)
  await produce(chain, 4)
  assertVoted(chain, chain.openSlot() - 3, chain.openSlot() - 1)
})
