import { STAKE_PROGRAM } from '../../chain/addresses.ts'
import type { Chain } from '../../chain/model.ts'
import type { BankView } from '../context.ts'
import { parsable } from '../parsed/byte-reader.ts'
import { SYSVAR } from '../parsed/program-ids.ts'
import { readStakeState } from '../parsed/stake.ts'
import { readClockTimestamp } from '../parsed/sysvars.ts'

/**
 * Accounts whose lamports do not circulate: stake under a lockup that still holds, and stake that only the chain's own validator may
 * withdraw, as the genesis stake. Mainnet's list of named accounts has no meaning here.
 */
export function findNonCirculating(chain: Chain, bank: BankView): ReadonlySet<string> {
  const found = new Set<string>()
  const clock = bank.readAccount(SYSVAR.clock)
  const now = clock ? readClockTimestamp(clock.data) : 0n
  const epoch = BigInt(Math.floor(bank.slot / chain.slotsPerEpoch))
  for (const [address, account] of chain.accountsOwnedBy(STAKE_PROGRAM, bank.commitment)) {
    const meta = parsable(() => readStakeState(account.data))?.meta
    if (!meta) continue
    const { lockup, withdrawer } = meta
    if (withdrawer === chain.identity || lockup.unixTimestamp > now || lockup.epoch > epoch) found.add(address)
  }
  return found
}
