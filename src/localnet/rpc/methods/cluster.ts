import { AGAVE_VERSION } from '../../../solana/agave-version.ts'
import { decodeBase58 } from '../../../solana/crypto/base58.ts'
import { shredVersionOf } from '../../../solana/shred/version.ts'
import type { Chain, Commitment } from '../../chain/model.ts'
import { SAMPLE_SECONDS, SAMPLES_MAX } from '../../chain/performance-samples.ts'
import { blockAt, blockHeightAt, openBank, type RpcMethods, withContext } from '../context.ts'
import { blockCleanedUp, blockNotAvailable, invalidParams, noSnapshot } from '../errors.ts'
import { type Json, jsonFloat } from '../json.ts'
import { listOf, optional, readArguments, string, usize } from '../params.ts'
import * as shape from '../request-shapes.ts'
import { atLeastConfirmed } from './blocks.ts'

/** Agave reports the first bytes of a hash of its features; this chain has all features of its engine and reports a fixed value. */
const FEATURE_SET = 0x736c7569
const INFLATION_REWARD_KEYS_MAX = 32
/** Inflation of a test validator (Agave's `Inflation::default`). It is only reported: this chain pays no inflation rewards. */
const INFLATION = { initial: 0.08, terminal: 0.015, taper: 0.15, foundation: 0.05, foundationTerm: 7 }
const YEAR_MS = 365.242_199 * 86_400_000
const STAKE_MINIMUM_LAMPORTS = 1_000_000_000n
/** PERFORMANCE_SAMPLES_LIMIT: one per minute for twelve hours. */
const maybeLimit = optional(usize)
const U64_MAX = 0xffffffffffffffffn

export const clusterMethods: RpcMethods = {
  getHealth(_context, params) {
    readArguments(params, [])
    return 'ok'
  },

  getVersion(_context, params) {
    readArguments(params, [])
    return { 'solana-core': AGAVE_VERSION, 'feature-set': FEATURE_SET }
  },

  getIdentity({ chain }, params) {
    readArguments(params, [])
    return { identity: chain.identity }
  },

  getGenesisHash({ chain }, params) {
    readArguments(params, [])
    return chain.genesisHash
  },

  getClusterNodes({ chain, addresses }, params) {
    readArguments(params, [])
    const node = {
      pubkey: chain.identity,
      gossip: null,
      tvu: null,
      tpu: null,
      tpuQuic: null,
      tpuForwards: null,
      tpuForwardsQuic: null,
      tpuVote: null,
      serveRepair: null,
      rpc: addresses.rpc ?? null,
      pubsub: addresses.pubsub ?? null,
      version: AGAVE_VERSION,
      clientId: 'Sluice',
      featureSet: FEATURE_SET,
      shredVersion: shredVersionOf(decodeBase58(chain.genesisHash)),
    }
    return [node]
  },

  getHighestSnapshotSlot(_context, params) {
    readArguments(params, [])
    throw noSnapshot()
  },

  /** Null on the tower. The bitmap names the only validator; there is no key to aggregate signatures with, so the signature is empty. */
  getAgGenesisCert({ chain }, params) {
    readArguments(params, [])
    const genesis = chain.alpenglowGenesis()
    if (genesis === undefined) return null
    return { slot: genesis.slot, blockId: genesis.blockhash, bitmap: [1], signature: [] }
  },

  getEpochInfo({ chain }, params) {
    const [config] = readArguments(params, [], [shape.contextConfig])
    const { slot, commitment } = openBank(chain, config)
    return {
      absoluteSlot: slot,
      blockHeight: blockHeightAt(chain, slot),
      epoch: epochOf(chain, slot),
      slotIndex: slot % chain.slotsPerEpoch,
      slotsInEpoch: chain.slotsPerEpoch,
      transactionCount: chain.transactionCount(commitment),
    }
  },

  getEpochSchedule({ chain }, params) {
    readArguments(params, [])
    return {
      slotsPerEpoch: chain.slotsPerEpoch,
      leaderScheduleSlotOffset: chain.slotsPerEpoch,
      warmup: false,
      firstNormalEpoch: 0,
      firstNormalSlot: 0,
    }
  },

  getInflationGovernor(_context, params) {
    readArguments(params, [], [shape.commitmentConfig])
    const { initial, terminal, taper, foundation, foundationTerm } = INFLATION
    return {
      initial: jsonFloat(initial),
      terminal: jsonFloat(terminal),
      taper: jsonFloat(taper),
      foundation: jsonFloat(foundation),
      foundationTerm: jsonFloat(foundationTerm),
    }
  },

  getInflationRate({ chain }, params) {
    readArguments(params, [])
    const epoch = epochOf(chain, chain.slot('finalized'))
    const years = (epoch * chain.slotsPerEpoch * chain.slotMs) / YEAR_MS
    const total = Math.max(INFLATION.initial * (1 - INFLATION.taper) ** years, INFLATION.terminal)
    const foundation = years < INFLATION.foundationTerm ? total * INFLATION.foundation : 0
    return {
      total: jsonFloat(total),
      validator: jsonFloat(total - foundation),
      foundation: jsonFloat(foundation),
      epoch,
    }
  },

  getInflationReward({ chain }, params) {
    const [addresses, config] = readArguments(params, [listOf(string)], [shape.epochConfig])
    if (addresses.length > INFLATION_REWARD_KEYS_MAX)
      throw invalidParams(`Too many inputs provided; max ${INFLATION_REWARD_KEYS_MAX}`)
    addresses.forEach(shape.checkAddress)
    const { slot } = openBank(chain, config)
    const epoch = config?.epoch ?? BigInt(Math.max(epochOf(chain, slot) - 1, 0))
    checkRewardBlock(chain, rewardSlotOf(chain, epoch), { top: slot, commitment: config?.commitment })
    return addresses.map(() => null)
  },

  getStakeMinimumDelegation({ chain }, params) {
    const [config] = readArguments(params, [], [shape.contextConfig])
    return withContext(openBank(chain, config).slot, STAKE_MINIMUM_LAMPORTS)
  },

  getRecentPerformanceSamples({ chain }, params) {
    const [limit] = readArguments(params, [], [maybeLimit])
    if (limit !== undefined && limit > BigInt(SAMPLES_MAX)) throw invalidParams(`Invalid limit; max ${SAMPLES_MAX}`)
    return readPerformanceSamples(chain, Number(limit ?? SAMPLES_MAX))
  },
}

function epochOf(chain: Chain, slot: number): number {
  return Math.floor(slot / chain.slotsPerEpoch)
}

/** Rewards of an epoch are paid in the first block of the next. */
function rewardSlotOf(chain: Chain, epoch: bigint): bigint {
  const slot = (epoch + 1n) * BigInt(chain.slotsPerEpoch)
  return slot > U64_MAX ? U64_MAX : slot
}

function checkRewardBlock(
  chain: Chain,
  rewardSlot: bigint,
  { top, commitment }: { readonly top: number; readonly commitment: Commitment | undefined },
): void {
  const firstAvailable = chain.firstAvailableSlot()
  if (rewardSlot < BigInt(firstAvailable)) throw blockCleanedUp(rewardSlot, firstAvailable)
  // After the check above: Agave looks for the block as getBlocksWithLimit does.
  atLeastConfirmed(commitment)
  if (rewardSlot > BigInt(top) || !blockAt(chain, rewardSlot)) throw blockNotAvailable(rewardSlot)
}

/** One sample per complete minute, newest first. The current minute is not included. */
function readPerformanceSamples(chain: Chain, limit: number): Json {
  return chain.performanceSamples(limit).map(({ slot, slots, transactions, votes }) => ({
    slot,
    numTransactions: transactions,
    numNonVoteTransactions: transactions - votes,
    numSlots: slots,
    samplePeriodSecs: SAMPLE_SECONDS,
  }))
}
