import { parseChainChange } from '../../../../localnet/chain-change.ts'
import type { Consensus } from '../../../../localnet/options.ts'
import { openControl } from '../../../control.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { printJson, write } from '../../../output/print.ts'

export type LocalnetSetFlags = CommonFlags & { readonly slotMs?: string; readonly consensus?: Consensus }

export async function localnetSet(this: CliContext, flags: LocalnetSetFlags): Promise<void> {
  const { slotMs, consensus } = flags
  const change = parseChainChange({ slotMs: slotMs === undefined ? undefined : numberIn(slotMs), consensus })
  using client = await openControl(this, flags)
  const settings = await client.call('localnet-set', change)
  if (flags.json === true) return printJson(this, settings)
  write(this, `from slot ${settings.fromSlot} on: slots of ${settings.slotMs} ms, consensus ${settings.consensus}`)
}

/** The text itself where it is not a number, for the message of the refusal. */
function numberIn(text: string): number | string {
  return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)
}
