import { VOTE_PROGRAM } from '../../chain/addresses.ts'
import type { Chain } from '../../chain/model.ts'
import { type BankView, openBank, type RpcMethods, withContext } from '../context.ts'
import { invalidParams } from '../errors.ts'
import type { Json } from '../json.ts'
import { readArguments, u64 } from '../params.ts'
import { parsable } from '../parsed/byte-reader.ts'
import { commissionPercent, readVoteState, type VoteState } from '../parsed/vote.ts'
import * as shape from '../request-shapes.ts'
import { stakesByVoter } from './stakes.ts'

const SLOT_LEADERS_MAX = 5000n
const DELINQUENT_SLOTS = 128n
/** MAX_RPC_VOTE_ACCOUNT_INFO_EPOCH_CREDITS_HISTORY. */
const CREDITS_SHOWN = 5
/** MAX_ENTRIES of the slot history: the range of getBlockProduction. */
const SLOT_HISTORY_SLOTS = 1024 * 1024

export const leaderMethods: RpcMethods = {
  async getLeaderSchedule({ chain, leaderSchedules, createSlices }, params) {
    const [wrapper, last] = readArguments(params, [], [shape.leaderScheduleWrapper, shape.leaderScheduleConfig])
    const config = typeof wrapper === 'object' ? wrapper : last
    if (config?.identity !== undefined) shape.checkAddress(config.identity)
    const bank = openBank(chain, config)
    const slot = typeof wrapper === 'bigint' ? wrapper : BigInt(bank.slot)
    const epoch = slot / BigInt(chain.slotsPerEpoch)
    if (!isScheduled(chain, bank.slot, epoch)) return null
    return leaderSchedules({ chain, epoch: Number(epoch), identity: config?.identity }, createSlices())
  },

  getSlotLeader({ chain }, params) {
    const [config] = readArguments(params, [], [shape.contextConfig])
    return chain.leaderOf(openBank(chain, config).slot)
  },

  getSlotLeaders({ chain }, params) {
    const [start, limit] = readArguments(params, [u64, u64])
    if (limit > SLOT_LEADERS_MAX) throw invalidParams(`Invalid limit; max ${SLOT_LEADERS_MAX}`)
    return listLeaders(chain, openBank(chain), start, Number(limit))
  },

  async getBlockProduction({ chain, createSlices }, params) {
    const [config] = readArguments(params, [], [shape.blockProductionConfig])
    if (config?.identity !== undefined) shape.checkAddress(config.identity)
    const bank = openBank(chain, config)
    const { firstSlot, lastSlot } = checkRange(chain, bank, config?.range)
    const byIdentity: { [identity: string]: [number, number] } = {}
    const slices = createSlices()
    for (let slot = firstSlot; slot <= lastSlot; slot++) {
      if (slices.isSpent()) await slices.yield()
      const leader = chain.leaderOf(slot)
      if (config?.identity !== undefined && config.identity !== leader) continue
      const counts = (byIdentity[leader] ??= [0, 0])
      counts[0] += 1
      // Every slot has a block, including those evicted from the ledger.
      if (slot < chain.firstAvailableSlot() || chain.hasBlock(slot)) counts[1] += 1
    }
    return withContext(bank.slot, { byIdentity, range: { firstSlot, lastSlot } })
  },

  getVoteAccounts({ chain }, params) {
    const [config] = readArguments(params, [], [shape.voteAccountsConfig])
    if (config?.votePubkey !== undefined) shape.checkAddress(config.votePubkey)
    const bank = openBank(chain, config)
    const stakes = stakesByVoter(chain, bank.commitment)
    const distance = config?.delinquentSlotDistance ?? DELINQUENT_SLOTS
    const current: Json[] = []
    const delinquent: Json[] = []
    for (const [address, account] of chain.accountsOwnedBy(VOTE_PROGRAM, bank.commitment)) {
      if (config?.votePubkey !== undefined && config.votePubkey !== address) continue
      const state = parsable(() => readVoteState(account.data, address))
      if (!state) continue
      const stake = stakes.get(address) ?? 0n
      const { lastVote, rootSlot } = votesOf(chain, bank, address, state)
      const encoded = encodeVoter(address, state, { stake, lastVote, rootSlot })
      const recent = BigInt(bank.slot) >= distance ? lastVote > BigInt(bank.slot) - distance : lastVote > 0n
      if (recent) current.push(encoded)
      else if (stake > 0n || config?.keepUnstakedDelinquents) delinquent.push(encoded)
    }
    return { current, delinquent }
  },
}

/** Schedules are known for the bank's epoch, the epochs before it, and the next one. */
function isScheduled(chain: Chain, bankSlot: number, epoch: bigint): boolean {
  return epoch <= BigInt(Math.floor(bankSlot / chain.slotsPerEpoch) + 1)
}

function listLeaders(chain: Chain, bank: BankView, start: bigint, limit: number): string[] {
  const slotsPerEpoch = BigInt(chain.slotsPerEpoch)
  const last = start + BigInt(Math.max(limit - 1, 0))
  for (let epoch = start / slotsPerEpoch; limit > 0 && epoch <= last / slotsPerEpoch; epoch++) {
    if (!isScheduled(chain, bank.slot, epoch)) {
      throw invalidParams(`Invalid slot range: leader schedule for epoch ${epoch} is unavailable`)
    }
  }
  return Array.from({ length: limit }, (_none, index) => chain.leaderOf(Number(start) + index))
}

function checkRange(
  chain: Chain,
  bank: BankView,
  range: { readonly firstSlot: bigint; readonly lastSlot: bigint | undefined } | undefined,
) {
  const first = range?.firstSlot ?? BigInt(bank.slot - (bank.slot % chain.slotsPerEpoch))
  const last = range?.lastSlot ?? BigInt(bank.slot)
  if (last < first) throw invalidParams(`lastSlot, ${last}, cannot be less than firstSlot, ${first}`)
  const oldest = Math.max(bank.slot - SLOT_HISTORY_SLOTS + 1, 0)
  if (first < BigInt(oldest)) throw invalidParams(`firstSlot, ${first}, is too small; min ${oldest}`)
  if (last > BigInt(bank.slot)) throw invalidParams(`lastSlot, ${last}, is too large; max ${bank.slot}`)
  return { firstSlot: Number(first), lastSlot: Number(last) }
}

/** Without vote transactions (under Alpenglow, or by `localnet.votes.enabled`) the chain's validator counts as voting for every block. */
function votesOf(
  chain: Chain,
  bank: BankView,
  address: string,
  state: VoteState,
): { lastVote: bigint; rootSlot: bigint } {
  if (address === chain.voteAccount && (state.votes.length === 0 || chain.consensus === 'alpenglow')) {
    return { lastVote: BigInt(bank.slot), rootSlot: BigInt(Math.min(chain.slot('finalized'), bank.slot)) }
  }
  return { lastVote: state.votes.at(-1)?.slot ?? 0n, rootSlot: state.rootSlot ?? 0n }
}

function encodeVoter(
  votePubkey: string,
  state: VoteState,
  votes: { stake: bigint; lastVote: bigint; rootSlot: bigint },
): Json {
  return {
    votePubkey,
    nodePubkey: state.nodePubkey,
    activatedStake: votes.stake,
    commission: commissionPercent(state),
    inflationRewardsCommissionBps: state.inflationRewardsCommissionBps,
    epochVoteAccount: true,
    epochCredits: state.epochCredits
      .slice(-CREDITS_SHOWN)
      .map(({ epoch, credits, previousCredits }) => [epoch, credits, previousCredits]),
    lastVote: votes.lastVote,
    rootSlot: votes.rootSlot,
  }
}
