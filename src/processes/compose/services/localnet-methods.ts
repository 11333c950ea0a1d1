import { ServiceError } from '../../../core/error.ts'
import { parseChainChange } from '../../../localnet/chain-change.ts'
import type { Consensus } from '../../../localnet/options.ts'
import type { Localnet } from '../../../localnet/service.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'

/** The response to `localnet-set`: the settings from the next slot on. */
export type ChainSettings = { readonly slotMs: number; readonly consensus: Consensus; readonly fromSlot: number }

/** The control methods of the chain in this process. */
export function localnetMethods(localnet: Localnet | undefined): ControlMethods {
  return {
    'localnet-set': (params): ChainSettings => {
      if (localnet === undefined) {
        throw new ServiceError('not-found', 'this process runs no embedded chain', {
          fix: 'Name the state folder of one that does with --state, or set localnet.enabled = true.',
        })
      }
      const { chain } = localnet
      const { slotMs, consensus } = parseChainChange(params)
      if (slotMs !== undefined) chain.setSlotMs(slotMs)
      if (consensus !== undefined) chain.setConsensus(consensus)
      return { ...chain.nextSettings, fromSlot: chain.openSlot() + 1 }
    },
  }
}
