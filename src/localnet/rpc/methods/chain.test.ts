import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestServer, type TestServer } from '../../../../test/support/solana/rpc-server.ts'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { RPC_METHODS } from '../dispatch.ts'

const SLOTS_PER_EPOCH = 32
const UNKNOWN = encodeBase58(new Uint8Array(32).fill(99))
const FAR = 9223372036854775807n

/** The 53 methods of Agave's API (master). */
const METHODS =
  `getAccountInfo getAgGenesisCert getBalance getBlock getBlockCommitment getBlockHeight getBlockProduction getBlocks
  getBlocksWithLimit getBlockTime getClusterNodes getEpochInfo getEpochSchedule getFeeForMessage getFirstAvailableBlock getGenesisHash
  getHealth getHighestSnapshotSlot getIdentity getInflationGovernor getInflationRate getInflationReward getLargestAccounts
  getLatestBlockhash getLeaderSchedule getMaxRetransmitSlot getMaxShredInsertSlot getMinimumBalanceForRentExemption
  getMultipleAccounts getProgramAccounts getRecentPerformanceSamples getRecentPrioritizationFees getSignaturesForAddress
  getSignatureStatuses getSlot getSlotLeader getSlotLeaders getStakeMinimumDelegation getSupply getTokenAccountBalance
  getTokenAccountsByDelegate getTokenAccountsByOwner getTokenLargestAccounts getTokenSupply getTransaction getTransactionCount
  getVersion getVoteAccounts isBlockhashValid minimumLedgerSlot requestAirdrop sendTransaction simulateTransaction`.split(
    /\s+/,
  )

describe('chain methods', () => {
  let server: TestServer
  let head = 0
  before(async () => {
    server = await startTestServer({
      slotsPerEpoch: SLOTS_PER_EPOCH,
      commitment: { confirmedSlots: 1, finalizedSlots: 3 },
    })
    await server.pass(40)
    head = server.chain.slot('processed')
  })
  after(() => server[Symbol.asyncDispose]())

  const BELOW_CONFIRMED = [-32602, 'Method does not support commitment below `confirmed`']

  it('are all implemented', () => {
    assert.deepEqual(Object.keys(RPC_METHODS).sort(), [...METHODS].sort())
    assert.equal(METHODS.length, 53)
  })

  it('without parameters refuse parameters', async () => {
    const bare = [
      'getHealth',
      'getVersion',
      'getIdentity',
      'getGenesisHash',
      'getClusterNodes',
      'getHighestSnapshotSlot',
      'getAgGenesisCert',
    ]
    bare.push(
      'getEpochSchedule',
      'getInflationRate',
      'getFirstAvailableBlock',
      'minimumLedgerSlot',
      'getMaxRetransmitSlot',
      'getMaxShredInsertSlot',
    )
    for (const method of bare) {
      const { error } = await server.ask(method, 1)
      assert.deepEqual(error, {
        code: -32602,
        message: 'Invalid parameters: No parameters were expected',
        data: 'Array([Number(1)])',
      })
    }
  })

  it('getHealth, getVersion, getIdentity, getGenesisHash, getAgGenesisCert, getHighestSnapshotSlot', async () => {
    assert.equal(await server.call('getHealth'), 'ok')
    const version = await server.call<{ 'solana-core': string; 'feature-set': number }>('getVersion')
    assert.equal(version['solana-core'], '4.2.1')
    assert.ok(Number.isInteger(version['feature-set']) && version['feature-set'] < 2 ** 32)
    assert.deepEqual(await server.call('getIdentity'), { identity: server.chain.identity })
    assert.equal(await server.call('getGenesisHash'), server.chain.genesisHash)
    assert.equal(await server.call('getAgGenesisCert'), null)
    assert.deepEqual(await server.refusal('getHighestSnapshotSlot'), [-32008, 'No snapshot'])
  })

  it('getClusterNodes', async () => {
    const [node] = await server.call<Record<string, unknown>[]>('getClusterNodes')
    assert.equal(node?.['pubkey'], server.chain.identity)
    assert.equal(node?.['rpc'], server.url.replace('http://', ''))
    assert.equal(node?.['pubsub'], '127.0.0.1:8900')
    assert.equal(node?.['gossip'], null)
  })

  it('getSlot, getBlockHeight, getTransactionCount', async () => {
    assert.equal(await server.call('getSlot'), head - 3)
    assert.equal(await server.call('getSlot', { commitment: 'confirmed' }), head - 1)
    assert.equal(await server.call('getSlot', { commitment: 'processed', minContextSlot: head }), head)
    assert.equal(await server.call('getBlockHeight', { commitment: 'processed' }), head)
    assert.equal(await server.call('getTransactionCount'), 0)
    for (const method of [
      'getSlot',
      'getBlockHeight',
      'getTransactionCount',
      'getSlotLeader',
      'getEpochInfo',
      'getStakeMinimumDelegation',
      'getLatestBlockhash',
    ]) {
      assert.deepEqual(await server.refusal(method, { minContextSlot: FAR }), [
        -32016,
        'Minimum context slot has not been reached',
      ])
    }
  })

  it('getBlock', async () => {
    const block = await server.call<Record<string, unknown>>('getBlock', head - 3)
    assert.deepEqual(Object.keys(block), [
      'previousBlockhash',
      'blockhash',
      'parentSlot',
      'transactions',
      'rewards',
      'blockTime',
      'blockHeight',
    ])
    assert.equal(block['parentSlot'], head - 4)
    assert.equal(
      (await server.call<{ blockHeight: number }>('getBlock', head - 1, { commitment: 'confirmed' })).blockHeight,
      head - 1,
    )
    const bare = await server.call<object>('getBlock', 0, { transactionDetails: 'none', rewards: false })
    assert.deepEqual(Object.keys(bare), ['previousBlockhash', 'blockhash', 'parentSlot', 'blockTime', 'blockHeight'])
    assert.deepEqual(await server.refusal('getBlock', head - 2), [-32004, `Block not available for slot ${head - 2}`])
    assert.deepEqual(await server.refusal('getBlock', FAR), [-32004, `Block not available for slot ${FAR}`])
    assert.deepEqual(await server.refusal('getBlock', 1, { commitment: 'processed' }), BELOW_CONFIRMED)
    assert.deepEqual(await server.refusal('getBlock', 'x'), [
      -32602,
      'Invalid params: invalid type: string "x", expected u64.',
    ])
    assert.equal((await server.refusal('getBlock', 1, { transactionDetails: 'some' }))[0], -32602)
  })

  it('getBlocks and getBlocksWithLimit', async () => {
    assert.deepEqual(await server.call('getBlocks', 1, 3), [1, 2, 3])
    assert.equal((await server.call<number[]>('getBlocks', 0)).at(-1), head - 3)
    assert.equal((await server.call<number[]>('getBlocks', 0, { commitment: 'confirmed' })).at(-1), head - 1)
    assert.equal((await server.call<number[]>('getBlocks', 0, null, { commitment: 'confirmed' })).at(-1), head - 1)
    assert.deepEqual(await server.call('getBlocks', 5, 4), [])
    assert.deepEqual(await server.call('getBlocks', FAR), [])
    assert.deepEqual(await server.refusal('getBlocks', 0, { commitment: 'processed' }), BELOW_CONFIRMED)
    assert.deepEqual(await server.refusal('getBlocks', 0, 'x'), [
      -32602,
      'Invalid params: data did not match any variant of untagged enum RpcBlocksConfigWrapper.',
    ])
    assert.equal((await server.refusal('getBlocks', 0, 1, { minContextSlot: FAR }))[0], -32016)
    assert.deepEqual(await server.call('getBlocksWithLimit', 2, 3), [2, 3, 4])
    assert.deepEqual(await server.call('getBlocksWithLimit', head - 1, 5, { commitment: 'confirmed' }), [head - 1])
    assert.deepEqual(await server.call('getBlocksWithLimit', FAR, 5), [])
    assert.deepEqual(await server.refusal('getBlocksWithLimit', 0, 500_001), [-32602, 'Limit too large; max 500000'])
    assert.deepEqual(await server.refusal('getBlocksWithLimit', 0, 1, { commitment: 'processed' }), BELOW_CONFIRMED)
  })

  it('getBlockTime', async () => {
    for (const slot of [0, 1, head])
      assert.equal(await server.call('getBlockTime', slot), server.chain.block(slot)?.time)
    assert.deepEqual(await server.refusal('getBlockTime', head + 1), [
      -32004,
      `Block not available for slot ${head + 1}`,
    ])
    assert.deepEqual(await server.refusal('getBlockTime'), [
      -32602,
      'Invalid params: invalid length 0, expected a tuple of size 1.',
    ])
  })

  it('getFirstAvailableBlock, minimumLedgerSlot, getMaxRetransmitSlot, getMaxShredInsertSlot', async () => {
    assert.equal(await server.call('getFirstAvailableBlock'), 0)
    assert.equal(await server.call('minimumLedgerSlot'), 0)
    assert.equal(await server.call('getMaxRetransmitSlot'), head)
    assert.equal(await server.call('getMaxShredInsertSlot'), head)
  })

  it('getBlockCommitment', async () => {
    type Voted = { commitment: number[] | null; totalStake: number }
    const recent = await server.call<Voted>('getBlockCommitment', head - 1)
    assert.equal(recent.commitment?.length, 32)
    assert.equal(recent.commitment?.[1], recent.totalStake)
    assert.ok(recent.totalStake > 0)
    assert.equal((await server.call<Voted>('getBlockCommitment', 0)).commitment, null)
    assert.equal((await server.call<Voted>('getBlockCommitment', FAR)).commitment, null)
    assert.equal((await server.refusal('getBlockCommitment', '1'))[0], -32602)
  })

  it('getEpochInfo and getEpochSchedule', async () => {
    assert.deepEqual(await server.call('getEpochInfo', { commitment: 'processed' }), {
      absoluteSlot: head,
      blockHeight: head,
      epoch: 1,
      slotIndex: head - SLOTS_PER_EPOCH,
      slotsInEpoch: SLOTS_PER_EPOCH,
      transactionCount: 0,
    })
    assert.deepEqual(await server.call('getEpochSchedule'), {
      slotsPerEpoch: SLOTS_PER_EPOCH,
      leaderScheduleSlotOffset: SLOTS_PER_EPOCH,
      warmup: false,
      firstNormalEpoch: 0,
      firstNormalSlot: 0,
    })
  })

  it('getLeaderSchedule, getSlotLeader, getSlotLeaders', async () => {
    const { identity } = server.chain
    const schedule = Array.from({ length: SLOTS_PER_EPOCH }, (_none, index) => index)
    assert.deepEqual(await server.call('getLeaderSchedule'), { [identity]: schedule })
    assert.deepEqual(await server.call('getLeaderSchedule', null, { identity }), { [identity]: schedule })
    assert.deepEqual(await server.call('getLeaderSchedule', { identity: UNKNOWN }), {})
    assert.deepEqual(await server.call('getLeaderSchedule', 0), { [identity]: schedule })
    assert.equal(await server.call('getLeaderSchedule', FAR), null)
    assert.deepEqual(await server.refusal('getLeaderSchedule', null, { identity: 'x' }), [
      -32602,
      'Invalid param: WrongSize',
    ])
    assert.equal(await server.call('getSlotLeader'), identity)
    assert.deepEqual(await server.call('getSlotLeaders', 0, 2), [identity, identity])
    assert.deepEqual(await server.call('getSlotLeaders', 0, 0), [])
    assert.deepEqual(await server.refusal('getSlotLeaders', 0, 5001), [-32602, 'Invalid limit; max 5000'])
    assert.deepEqual(await server.refusal('getSlotLeaders', 4 * SLOTS_PER_EPOCH, 1), [
      -32602,
      'Invalid slot range: leader schedule for epoch 4 is unavailable',
    ])
    assert.equal((await server.refusal('getSlotLeaders', FAR, 3))[0], -32602)
  })

  it('getBlockProduction', async () => {
    type Production = {
      context: { slot: number }
      value: { byIdentity: Record<string, number[]>; range: { firstSlot: number; lastSlot: number } }
    }
    const { context, value } = await server.call<Production>('getBlockProduction')
    assert.deepEqual(value.range, { firstSlot: SLOTS_PER_EPOCH, lastSlot: context.slot })
    const slots = context.slot - SLOTS_PER_EPOCH + 1
    assert.deepEqual(value.byIdentity, { [server.chain.identity]: [slots, slots] })
    const none = await server.call<Production>('getBlockProduction', { identity: UNKNOWN, range: { firstSlot: 0 } })
    assert.deepEqual(none.value, { byIdentity: {}, range: { firstSlot: 0, lastSlot: context.slot } })
    assert.deepEqual(await server.refusal('getBlockProduction', { range: { firstSlot: 0, lastSlot: FAR } }), [
      -32602,
      `lastSlot, ${FAR}, is too large; max ${context.slot}`,
    ])
    assert.deepEqual(await server.refusal('getBlockProduction', { range: { firstSlot: 3, lastSlot: 2 } }), [
      -32602,
      'lastSlot, 2, cannot be less than firstSlot, 3',
    ])
    assert.equal((await server.refusal('getBlockProduction', { identity: 'x' }))[0], -32602)
  })

  it('getVoteAccounts', async () => {
    type Voter = {
      votePubkey: string
      nodePubkey: string
      activatedStake: number
      lastVote: number
      epochVoteAccount: boolean
    }
    type Voters = { current: Voter[]; delinquent: Voter[] }
    const { current, delinquent } = await server.call<Voters>('getVoteAccounts')
    assert.deepEqual(delinquent, [])
    assert.equal(current.length, 1)
    assert.equal(current[0]?.votePubkey, server.chain.voteAccount)
    assert.equal(current[0]?.nodePubkey, server.chain.identity)
    assert.ok((current[0]?.activatedStake ?? 0) > 0)
    assert.deepEqual(await server.call('getVoteAccounts', { votePubkey: UNKNOWN }), { current: [], delinquent: [] })
    assert.deepEqual(await server.refusal('getVoteAccounts', { votePubkey: 'x' }), [-32602, 'Invalid param: WrongSize'])
  })

  it('getInflationGovernor, getInflationRate, getInflationReward', async () => {
    const governor = await server.call<object>('getInflationGovernor')
    assert.deepEqual(Object.keys(governor), ['initial', 'terminal', 'taper', 'foundation', 'foundationTerm'])
    assert.deepEqual(Object.keys(await server.call<object>('getInflationRate')), [
      'total',
      'validator',
      'foundation',
      'epoch',
    ])
    assert.equal((await server.refusal('getInflationGovernor', 5))[0], -32602)
    assert.deepEqual(await server.call('getInflationReward', [UNKNOWN], { epoch: 0 }), [null])
    assert.deepEqual(await server.call('getInflationReward', []), [])
    assert.deepEqual(await server.refusal('getInflationReward', [UNKNOWN], { epoch: 1 }), [
      -32004,
      'Block not available for slot 64',
    ])
    assert.equal((await server.refusal('getInflationReward', [], { epoch: FAR }))[0], -32004)
    for (const epoch of [0, 1, FAR])
      assert.deepEqual(
        await server.refusal('getInflationReward', [UNKNOWN], { epoch, commitment: 'processed' }),
        BELOW_CONFIRMED,
      )
    assert.equal((await server.refusal('getInflationReward', [], { minContextSlot: FAR }))[0], -32016)
    const many = Array.from({ length: 33 }, () => UNKNOWN)
    assert.deepEqual(await server.refusal('getInflationReward', many), [-32602, 'Too many inputs provided; max 32'])
  })

  it('getStakeMinimumDelegation', async () => {
    const { value } = await server.call<{ value: number }>('getStakeMinimumDelegation')
    assert.equal(value, 1_000_000_000)
  })

  it('getRecentPerformanceSamples', async () => {
    assert.deepEqual(await server.call('getRecentPerformanceSamples'), [])
    // Two minutes of slots: the current minute is not included.
    const slotsInMinutes = (2 * 60_000) / server.chain.slotMs
    for (let slot = 0; slot < slotsInMinutes; slot += 30) {
      server.clock.advance(30 * server.chain.slotMs)
      await server.pass(1)
    }
    const samples = await server.call<
      { slot: number; numSlots: number; numTransactions: number; samplePeriodSecs: number }[]
    >('getRecentPerformanceSamples', 1)
    assert.equal(samples.length, 1)
    assert.equal(samples[0]?.samplePeriodSecs, 60)
    assert.ok((samples[0]?.numSlots ?? 0) > 0)
    assert.deepEqual(await server.refusal('getRecentPerformanceSamples', 721), [-32602, 'Invalid limit; max 720'])
  })
})

describe('a ledger with evicted blocks', () => {
  it('reports the first available block', async () => {
    await using server = await startTestServer({
      limits: { ledgerBlocksMax: 512 },
      commitment: { confirmedSlots: 0, finalizedSlots: 0 },
    })
    await server.pass(600)
    const first = server.chain.firstAvailableSlot()
    assert.ok(first > 1)
    assert.equal(await server.call('getFirstAvailableBlock'), first)
    assert.deepEqual(await server.refusal('getBlock', 1), [
      -32001,
      `Block 1 cleaned up, does not exist on node. First available block: ${first}`,
    ])
    assert.equal((await server.call<number[]>('getBlocks', 0))[0], first)
    assert.equal((await server.refusal('getBlockTime', 1))[0], -32001)
  })
})
