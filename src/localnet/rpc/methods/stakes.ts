import { STAKE_PROGRAM } from '../../chain/addresses.ts'
import type { Chain, Commitment } from '../../chain/model.ts'
import { parsable } from '../parsed/byte-reader.ts'
import { readStakeState } from '../parsed/stake.ts'

/** Stake delegated to each vote account. Without warm-up, a delegation counts from its activation epoch to its deactivation epoch. */
export function stakesByVoter(chain: Chain, commitment: Commitment): ReadonlyMap<string, bigint> {
  const epoch = BigInt(Math.floor(chain.slot(commitment) / chain.slotsPerEpoch))
  const stakes = new Map<string, bigint>()
  for (const [, account] of chain.accountsOwnedBy(STAKE_PROGRAM, commitment)) {
    const delegation = parsable(() => readStakeState(account.data))?.delegation
    if (!delegation || !isActive(delegation, epoch)) continue
    stakes.set(delegation.voter, (stakes.get(delegation.voter) ?? 0n) + delegation.stake)
  }
  return stakes
}

/** Genesis stake has the maximum epoch as its activation epoch and counts from the start. */
const GENESIS_ACTIVATION = 0xffffffffffffffffn

function isActive(
  { activationEpoch, deactivationEpoch }: { activationEpoch: bigint; deactivationEpoch: bigint },
  epoch: bigint,
): boolean {
  const activated = activationEpoch === GENESIS_ACTIVATION || activationEpoch <= epoch
  return activated && deactivationEpoch > epoch
}

export function totalStake(chain: Chain): bigint {
  let total = 0n
  for (const stake of stakesByVoter(chain, 'processed').values()) total += stake
  return total
}
