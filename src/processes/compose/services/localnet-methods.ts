import { ServiceError } from '../../../core/error.ts'
import { parseChainChange } from '../../../localnet/chain-change.ts'
import type { Localnet } from '../../../localnet/service.ts'
import type { ControlMethodsOf } from '../process/control-protocol.ts'

/** The control methods of the chain in this process. */
export function localnetMethods(localnet: Localnet | undefined): ControlMethodsOf<'localnet-set'> {
  return {
    'localnet-set': (change) => {
      if (localnet === undefined) {
        throw new ServiceError('not-found', 'this process runs no embedded chain', {
          fix: 'Name the state folder of one that does with --state, or set localnet.enabled = true.',
        })
      }
      const { chain } = localnet
      const { slotMs, consensus } = parseChainChange(change)
      if (slotMs !== undefined) chain.setSlotMs(slotMs)
      if (consensus !== undefined) chain.setConsensus(consensus)
      return { ...chain.nextSettings, fromSlot: chain.openSlot() + 1 }
    },
  }
}
