import { ByteReader, BytesError } from './byte-reader.ts'
import type { AccountToParse, ParsedState } from './parser.ts'

export type StakeState = {
  readonly kind: 'uninitialized' | 'initialized' | 'delegated' | 'rewardsPool'
  readonly meta?: StakeMeta
  readonly delegation?: StakeDelegation
}

type StakeMeta = {
  readonly rentExemptReserve: bigint
  readonly staker: string
  readonly withdrawer: string
  readonly lockup: { readonly unixTimestamp: bigint; readonly epoch: bigint; readonly custodian: string }
}

type StakeDelegation = {
  readonly voter: string
  readonly stake: bigint
  readonly activationEpoch: bigint
  readonly deactivationEpoch: bigint
  readonly creditsObserved: bigint
}

/** Stake program's `StakeStateV2` in bincode. Throws BytesError. */
export function readStakeState(data: Uint8Array): StakeState {
  const read = new ByteReader(data)
  switch (read.u32()) {
    case 0:
      return { kind: 'uninitialized' }
    case 1:
      return { kind: 'initialized', meta: readMeta(read) }
    case 2: {
      const meta = readMeta(read)
      const [voter, stake, activationEpoch, deactivationEpoch] = [read.key(), read.u64(), read.u64(), read.u64()]
      // The warm-up rate that follows is not in the output since Agave 4.1.
      read.f64()
      return {
        kind: 'delegated',
        meta,
        delegation: { voter, stake, activationEpoch, deactivationEpoch, creditsObserved: read.u64() },
      }
    }
    case 3:
      return { kind: 'rewardsPool' }
    default:
      throw new BytesError('not a stake account')
  }
}

function readMeta(read: ByteReader): StakeMeta {
  return {
    rentExemptReserve: read.u64(),
    staker: read.key(),
    withdrawer: read.key(),
    lockup: { unixTimestamp: read.i64(), epoch: read.u64(), custodian: read.key() },
  }
}

export function parseStake({ data }: AccountToParse): ParsedState {
  const { kind, meta, delegation } = readStakeState(data)
  if (!meta) return { type: kind }
  const { rentExemptReserve, staker, withdrawer, lockup } = meta
  const info = {
    meta: { rentExemptReserve: rentExemptReserve.toString(), authorized: { staker, withdrawer }, lockup },
    stake: delegation
      ? {
          delegation: {
            voter: delegation.voter,
            stake: delegation.stake.toString(),
            activationEpoch: delegation.activationEpoch.toString(),
            deactivationEpoch: delegation.deactivationEpoch.toString(),
          },
          creditsObserved: delegation.creditsObserved,
        }
      : null,
  }
  return { type: kind, info }
}
