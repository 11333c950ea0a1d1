import { parseChainChange } from '../../../../localnet/chain-change.ts'
import type { Consensus } from '../../../../localnet/options.ts'
import { openControlClient } from '../../../../platform/process/control-client.ts'
import type { ChainSettings } from '../../../../processes/compose/services/localnet-methods.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { controlPath } from '../../../locate.ts'
import { printJson, write } from '../../../output/print.ts'

export type LocalnetSetFlags = CommonFlags & { readonly slotMs?: string; readonly consensus?: Consensus }

export async function localnetSet(this: CliContext, flags: LocalnetSetFlags): Promise<void> {
  const { slotMs, consensus } = flags
  const change = parseChainChange({ slotMs: slotMs === undefined ? undefined : numberIn(slotMs), consensus })
  using client = await openControlClient(controlPath(this, flags))
  const settings = (await client.call('localnet-set', change)) as ChainSettings
  if (flags.json === true) return printJson(this, settings)
  write(this, `from slot ${settings.fromSlot} on: slots of ${settings.slotMs} ms, consensus ${settings.consensus}`)
}

/** The text itself where it is not a number, for the message of the refusal. */
function numberIn(text: string): number | string {
  return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)
}
