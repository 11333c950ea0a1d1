import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { ByteReader, BytesError } from './byte-reader.ts'
import type { AccountToParse, ParsedState } from './parser.ts'

export type VoteState = {
  readonly nodePubkey: string
  readonly authorizedWithdrawer: string
  readonly inflationRewardsCollector: string
  readonly blockRevenueCollector: string
  readonly inflationRewardsCommissionBps: number
  readonly blockRevenueCommissionBps: number
  readonly pendingDelegatorRewards: bigint
  readonly blsPubkeyCompressed: string | null
  readonly votes: readonly { readonly latency: number; readonly slot: bigint; readonly confirmationCount: number }[]
  readonly rootSlot: bigint | null
  readonly authorizedVoters: readonly { readonly epoch: bigint; readonly authorizedVoter: string }[]
  readonly epochCredits: readonly {
    readonly epoch: bigint
    readonly credits: bigint
    readonly previousCredits: bigint
  }[]
  readonly lastTimestamp: { readonly slot: bigint; readonly timestamp: bigint }
}

/** Version numbers of the vote program's state in bincode: 1 without latencies, 2 with them, 3 of SIMD-0185. */
const V1_14_11 = 1
const V3 = 2
const V4 = 3
const BLS_PUBKEY_BYTES = 48
/** The block revenue commission of older vote account versions (SIMD-0185): all of it goes to the validator. */
const FULL_COMMISSION_BPS = 10_000
const PRIOR_VOTERS = 32
const PRIOR_VOTER_BYTES = 48

/** Reads any version and gives it the shape of version 4. Throws BytesError. */
export function readVoteState(data: Uint8Array, votePubkey: string): VoteState {
  const read = new ByteReader(data)
  const version = read.u32()
  if (version === V4) return readV4(read)
  if (version !== V1_14_11 && version !== V3) throw new BytesError('not a vote account')
  const nodePubkey = read.key()
  const authorizedWithdrawer = read.key()
  const commission = read.u8()
  const votes = read.list64(12, () => readVote(read, version === V3))
  const rootSlot = read.option(() => read.u64())
  const authorizedVoters = readAuthorizedVoters(read)
  // The circular buffer of prior voters: 32 entries, then the index and a flag. Version 4 has none.
  read.bytes(PRIOR_VOTERS * PRIOR_VOTER_BYTES)
  read.u64()
  read.bool()
  return {
    nodePubkey,
    authorizedWithdrawer,
    inflationRewardsCollector: votePubkey,
    blockRevenueCollector: nodePubkey,
    inflationRewardsCommissionBps: commission * 100,
    blockRevenueCommissionBps: FULL_COMMISSION_BPS,
    pendingDelegatorRewards: 0n,
    blsPubkeyCompressed: null,
    votes,
    rootSlot,
    authorizedVoters,
    ...readTail(read),
  }
}

function readV4(read: ByteReader): VoteState {
  return {
    nodePubkey: read.key(),
    authorizedWithdrawer: read.key(),
    inflationRewardsCollector: read.key(),
    blockRevenueCollector: read.key(),
    inflationRewardsCommissionBps: read.u16(),
    blockRevenueCommissionBps: read.u16(),
    pendingDelegatorRewards: read.u64(),
    blsPubkeyCompressed: read.option(() => encodeBase58(read.bytes(BLS_PUBKEY_BYTES))),
    votes: read.list64(13, () => readVote(read, true)),
    rootSlot: read.option(() => read.u64()),
    authorizedVoters: readAuthorizedVoters(read),
    ...readTail(read),
  }
}

function readVote(read: ByteReader, withLatency: boolean) {
  return { latency: withLatency ? read.u8() : 0, slot: read.u64(), confirmationCount: read.u32() }
}

function readAuthorizedVoters(read: ByteReader) {
  return read.list64(40, () => ({ epoch: read.u64(), authorizedVoter: read.key() }))
}

function readTail(read: ByteReader) {
  return {
    epochCredits: read.list64(24, () => ({ epoch: read.u64(), credits: read.u64(), previousCredits: read.u64() })),
    lastTimestamp: { slot: read.u64(), timestamp: read.i64() },
  }
}

export function commissionPercent(vote: VoteState): number {
  return Math.min(Math.floor(vote.inflationRewardsCommissionBps / 100), 255)
}

export function parseVote({ address, data }: AccountToParse): ParsedState {
  const vote = readVoteState(data, address)
  const info = {
    ...vote,
    pendingDelegatorRewards: vote.pendingDelegatorRewards.toString(),
    commission: commissionPercent(vote),
    priorVoters: [],
    epochCredits: vote.epochCredits.map(({ epoch, credits, previousCredits }) => ({
      epoch,
      credits: credits.toString(),
      previousCredits: previousCredits.toString(),
    })),
  }
  return { type: 'vote', info }
}
