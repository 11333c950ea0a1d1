import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestDoor, type TestDoor } from '../../../test/support/rpc-door.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { RPC_METHODS } from './dispatch.ts'

const SLOTS_PER_EPOCH = 32
const UNKNOWN = encodeBase58(new Uint8Array(32).fill(99))
const FAR = 9223372036854775807n

/** The 53 methods of the API (Agave master), the measure of what is served. */
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
  let door: TestDoor
  let head = 0
  before(async () => {
    door = await startTestDoor({ slotsPerEpoch: SLOTS_PER_EPOCH, commitment: { confirmedSlots: 1, finalizedSlots: 3 } })
    await door.pass(40)
    head = door.chain.slot('processed')
  })
  after(() => door[Symbol.asyncDispose]())

  const BELOW_CONFIRMED = [-32602, 'Method does not support commitment below `confirmed`']

  it('are all there', () => {
    assert.deepEqual(Object.keys(RPC_METHODS).sort(), [...METHODS].sort())
    assert.equal(METHODS.length, 53)
  })

  it('that take nothing say so', async () => {
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
      const { error } = await door.ask(method, 1)
      assert.deepEqual(error, {
        code: -32602,
        message: 'Invalid parameters: No parameters were expected',
        data: 'Array([Number(1)])',
      })
    }
  })

  it('getHealth, getVersion, getIdentity, getGenesisHash, getAgGenesisCert, getHighestSnapshotSlot', async () => {
    assert.equal(await door.call('getHealth'), 'ok')
    const version = await door.call<{ 'solana-core': string; 'feature-set': number }>('getVersion')
    assert.equal(version['solana-core'], '4.2.1')
    assert.ok(Number.isInteger(version['feature-set']) && version['feature-set'] < 2 ** 32)
    assert.deepEqual(await door.call('getIdentity'), { identity: door.chain.identity })
    assert.equal(await door.call('getGenesisHash'), door.chain.genesisHash)
    assert.equal(await door.call('getAgGenesisCert'), null)
    assert.deepEqual(await door.refusal('getHighestSnapshotSlot'), [-32008, 'No snapshot'])
  })

  it('getClusterNodes', async () => {
    const [node] = await door.call<Record<string, unknown>[]>('getClusterNodes')
    assert.equal(node?.['pubkey'], door.chain.identity)
    assert.equal(node?.['rpc'], door.url.replace('http://', ''))
    assert.equal(node?.['pubsub'], '127.0.0.1:8900')
    assert.equal(node?.['gossip'], null)
  })

  it('getSlot, getBlockHeight, getTransactionCount', async () => {
    assert.equal(await door.call('getSlot'), head - 3)
    assert.equal(await door.call('getSlot', { commitment: 'confirmed' }), head - 1)
    assert.equal(await door.call('getSlot', { commitment: 'processed', minContextSlot: head }), head)
    assert.equal(await door.call('getBlockHeight', { commitment: 'processed' }), head)
    assert.equal(await door.call('getTransactionCount'), 0)
    for (const method of [
      'getSlot',
      'getBlockHeight',
      'getTransactionCount',
      'getSlotLeader',
      'getEpochInfo',
      'getStakeMinimumDelegation',
      'getLatestBlockhash',
    ]) {
      assert.deepEqual(await door.refusal(method, { minContextSlot: FAR }), [
        -32016,
        'Minimum context slot has not been reached',
      ])
    }
  })

  it('getBlock', async () => {
    const block = await door.call<Record<string, unknown>>('getBlock', head - 3)
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
      (await door.call<{ blockHeight: number }>('getBlock', head - 1, { commitment: 'confirmed' })).blockHeight,
      head - 1,
    )
    const bare = await door.call<object>('getBlock', 0, { transactionDetails: 'none', rewards: false })
    assert.deepEqual(Object.keys(bare), ['previousBlockhash', 'blockhash', 'parentSlot', 'blockTime', 'blockHeight'])
    assert.deepEqual(await door.refusal('getBlock', head - 2), [-32004, `Block not available for slot ${head - 2}`])
    assert.deepEqual(await door.refusal('getBlock', FAR), [-32004, `Block not available for slot ${FAR}`])
    assert.deepEqual(await door.refusal('getBlock', 1, { commitment: 'processed' }), BELOW_CONFIRMED)
    assert.deepEqual(await door.refusal('getBlock', 'x'), [
      -32602,
      'Invalid params: invalid type: string "x", expected u64.',
    ])
    assert.equal((await door.refusal('getBlock', 1, { transactionDetails: 'some' }))[0], -32602)
  })

  it('getBlocks and getBlocksWithLimit', async () => {
    assert.deepEqual(await door.call('getBlocks', 1, 3), [1, 2, 3])
    assert.equal((await door.call<number[]>('getBlocks', 0)).at(-1), head - 3)
    assert.equal((await door.call<number[]>('getBlocks', 0, { commitment: 'confirmed' })).at(-1), head - 1)
    assert.equal((await door.call<number[]>('getBlocks', 0, null, { commitment: 'confirmed' })).at(-1), head - 1)
    assert.deepEqual(await door.call('getBlocks', 5, 4), [])
    assert.deepEqual(await door.call('getBlocks', FAR), [])
    assert.deepEqual(await door.refusal('getBlocks', 0, { commitment: 'processed' }), BELOW_CONFIRMED)
    assert.deepEqual(await door.refusal('getBlocks', 0, 'x'), [
      -32602,
      'Invalid params: data did not match any variant of untagged enum RpcBlocksConfigWrapper.',
    ])
    assert.equal((await door.refusal('getBlocks', 0, 1, { minContextSlot: FAR }))[0], -32016)
    assert.deepEqual(await door.call('getBlocksWithLimit', 2, 3), [2, 3, 4])
    assert.deepEqual(await door.call('getBlocksWithLimit', head - 1, 5, { commitment: 'confirmed' }), [head - 1])
    assert.deepEqual(await door.call('getBlocksWithLimit', FAR, 5), [])
    assert.deepEqual(await door.refusal('getBlocksWithLimit', 0, 500_001), [-32602, 'Limit too large; max 500000'])
    assert.deepEqual(await door.refusal('getBlocksWithLimit', 0, 1, { commitment: 'processed' }), BELOW_CONFIRMED)
  })

  it('getBlockTime', async () => {
    for (const slot of [0, 1, head]) assert.equal(await door.call('getBlockTime', slot), door.chain.block(slot)?.time)
    assert.deepEqual(await door.refusal('getBlockTime', head + 1), [-32004, `Block not available for slot ${head + 1}`])
    assert.deepEqual(await door.refusal('getBlockTime'), [
      -32602,
      'Invalid params: invalid length 0, expected a tuple of size 1.',
    ])
  })

  it('getFirstAvailableBlock, minimumLedgerSlot, getMaxRetransmitSlot, getMaxShredInsertSlot', async () => {
    assert.equal(await door.call('getFirstAvailableBlock'), 0)
    assert.equal(await door.call('minimumLedgerSlot'), 0)
    assert.equal(await door.call('getMaxRetransmitSlot'), head)
    assert.equal(await door.call('getMaxShredInsertSlot'), head)
  })

  it('getBlockCommitment', async () => {
    type Voted = { commitment: number[] | null; totalStake: number }
    const recent = await door.call<Voted>('getBlockCommitment', head - 1)
    assert.equal(recent.commitment?.length, 32)
    assert.equal(recent.commitment?.[1], recent.totalStake)
    assert.ok(recent.totalStake > 0)
    assert.equal((await door.call<Voted>('getBlockCommitment', 0)).commitment, null)
    assert.equal((await door.call<Voted>('getBlockCommitment', FAR)).commitment, null)
    assert.equal((await door.refusal('getBlockCommitment', '1'))[0], -32602)
  })

  it('getEpochInfo and getEpochSchedule', async () => {
    assert.deepEqual(await door.call('getEpochInfo', { commitment: 'processed' }), {
      absoluteSlot: head,
      blockHeight: head,
      epoch: 1,
      slotIndex: head - SLOTS_PER_EPOCH,
      slotsInEpoch: SLOTS_PER_EPOCH,
      transactionCount: 0,
    })
    assert.deepEqual(await door.call('getEpochSchedule'), {
      slotsPerEpoch: SLOTS_PER_EPOCH,
      leaderScheduleSlotOffset: SLOTS_PER_EPOCH,
      warmup: false,
      firstNormalEpoch: 0,
      firstNormalSlot: 0,
    })
  })

  it('getLeaderSchedule, getSlotLeader, getSlotLeaders', async () => {
    const { identity } = door.chain
    const whole = Array.from({ length: SLOTS_PER_EPOCH }, (_none, index) => index)
    assert.deepEqual(await door.call('getLeaderSchedule'), { [identity]: whole })
    assert.deepEqual(await door.call('getLeaderSchedule', null, { identity }), { [identity]: whole })
    assert.deepEqual(await door.call('getLeaderSchedule', { identity: UNKNOWN }), {})
    assert.deepEqual(await door.call('getLeaderSchedule', 0), { [identity]: whole })
    assert.equal(await door.call('getLeaderSchedule', FAR), null)
    assert.deepEqual(await door.refusal('getLeaderSchedule', null, { identity: 'x' }), [
      -32602,
      'Invalid param: WrongSize',
    ])
    assert.equal(await door.call('getSlotLeader'), identity)
    assert.deepEqual(await door.call('getSlotLeaders', 0, 2), [identity, identity])
    assert.deepEqual(await door.call('getSlotLeaders', 0, 0), [])
    assert.deepEqual(await door.refusal('getSlotLeaders', 0, 5001), [-32602, 'Invalid limit; max 5000'])
    assert.deepEqual(await door.refusal('getSlotLeaders', 4 * SLOTS_PER_EPOCH, 1), [
      -32602,
      'Invalid slot range: leader schedule for epoch 4 is unavailable',
    ])
    assert.equal((await door.refusal('getSlotLeaders', FAR, 3))[0], -32602)
  })

  it('getBlockProduction', async () => {
    type Production = {
      context: { slot: number }
      value: { byIdentity: Record<string, number[]>; range: { firstSlot: number; lastSlot: number } }
    }
    const { context, value } = await door.call<Production>('getBlockProduction')
    assert.deepEqual(value.range, { firstSlot: SLOTS_PER_EPOCH, lastSlot: context.slot })
    const slots = context.slot - SLOTS_PER_EPOCH + 1
    assert.deepEqual(value.byIdentity, { [door.chain.identity]: [slots, slots] })
    const none = await door.call<Production>('getBlockProduction', { identity: UNKNOWN, range: { firstSlot: 0 } })
    assert.deepEqual(none.value, { byIdentity: {}, range: { firstSlot: 0, lastSlot: context.slot } })
    assert.deepEqual(await door.refusal('getBlockProduction', { range: { firstSlot: 0, lastSlot: FAR } }), [
      -32602,
      `lastSlot, ${FAR}, is too large; max ${context.slot}`,
    ])
    assert.deepEqual(await door.refusal('getBlockProduction', { range: { firstSlot: 3, lastSlot: 2 } }), [
      -32602,
      'lastSlot, 2, cannot be less than firstSlot, 3',
    ])
    assert.equal((await door.refusal('getBlockProduction', { identity: 'x' }))[0], -32602)
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
    const { current, delinquent } = await door.call<Voters>('getVoteAccounts')
    assert.deepEqual(delinquent, [])
    assert.equal(current.length, 1)
    assert.equal(current[0]?.votePubkey, door.chain.voteAccount)
    assert.equal(current[0]?.nodePubkey, door.chain.identity)
    assert.ok((current[0]?.activatedStake ?? 0) > 0)
    assert.deepEqual(await door.call('getVoteAccounts', { votePubkey: UNKNOWN }), { current: [], delinquent: [] })
    assert.deepEqual(await door.refusal('getVoteAccounts', { votePubkey: 'x' }), [-32602, 'Invalid param: WrongSize'])
  })

  it('getInflationGovernor, getInflationRate, getInflationReward', async () => {
    const governor = await door.call<object>('getInflationGovernor')
    assert.deepEqual(Object.keys(governor), ['initial', 'terminal', 'taper', 'foundation', 'foundationTerm'])
    assert.deepEqual(Object.keys(await door.call<object>('getInflationRate')), [
      'total',
      'validator',
      'foundation',
      'epoch',
    ])
    assert.equal((await door.refusal('getInflationGovernor', 5))[0], -32602)
    assert.deepEqual(await door.call('getInflationReward', [UNKNOWN], { epoch: 0 }), [null])
    assert.deepEqual(await door.call('getInflationReward', []), [])
    assert.deepEqual(await door.refusal('getInflationReward', [UNKNOWN], { epoch: 1 }), [
      -32004,
      'Block not available for slot 64',
    ])
    assert.equal((await door.refusal('getInflationReward', [], { epoch: FAR }))[0], -32004)
    assert.equal((await door.refusal('getInflationReward', [], { minContextSlot: FAR }))[0], -32016)
    const many = Array.from({ length: 33 }, () => UNKNOWN)
    assert.deepEqual(await door.refusal('getInflationReward', many), [-32602, 'Too many inputs provided; max 32'])
  })

  it('getStakeMinimumDelegation', async () => {
    const { value } = await door.call<{ value: number }>('getStakeMinimumDelegation')
    assert.equal(value, 1_000_000_000)
  })

  it('getRecentPerformanceSamples', async () => {
    assert.deepEqual(await door.call('getRecentPerformanceSamples'), [])
    // Two minutes of slots: the running minute is not shown.
    const slotsInMinutes = (2 * 60_000) / door.chain.slotMs
    for (let slot = 0; slot < slotsInMinutes; slot += 30) {
      door.clock.advance(30 * door.chain.slotMs)
      await door.pass(1)
    }
    const samples = await door.call<
      { slot: number; numSlots: number; numTransactions: number; samplePeriodSecs: number }[]
    >('getRecentPerformanceSamples', 1)
    assert.equal(samples.length, 1)
    assert.equal(samples[0]?.samplePeriodSecs, 60)
    assert.ok((samples[0]?.numSlots ?? 0) > 0)
    assert.deepEqual(await door.refusal('getRecentPerformanceSamples', 721), [-32602, 'Invalid limit; max 720'])
  })
})

describe('a ledger that has let blocks go', () => {
  it('says which one is the first it has', async () => {
    await using door = await startTestDoor({
      limits: { ledgerBlocksMax: 512 },
      commitment: { confirmedSlots: 0, finalizedSlots: 0 },
    })
    await door.pass(600)
    const first = door.chain.firstAvailableSlot()
    assert.ok(first > 1)
    assert.equal(await door.call('getFirstAvailableBlock'), first)
    assert.deepEqual(await door.refusal('getBlock', 1), [
      -32001,
      `Block 1 cleaned up, does not exist on node. First available block: ${first}`,
    ])
    assert.equal((await door.call<number[]>('getBlocks', 0))[0], first)
    assert.equal((await door.refusal('getBlockTime', 1))[0], -32001)
  })
})
