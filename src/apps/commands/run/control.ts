import { join } from 'node:path'
import { openControlClient } from '../../../host/control-client.ts'
import { confirmCut } from '../confirm.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import { printJson, say } from '../output.ts'
import { stateDirOf } from '../settings.ts'

export async function reload(this: CliContext, flags: CommonFlags): Promise<void> {
  using client = await openControlClient(controlPath(this, flags))
  const answer = await client.call('reload')
  if (flags.json === true) printJson(this, answer)
  else for (const line of (answer as { says: string[] }).says) say(this, line)
}

export async function drain(this: CliContext, flags: CommonFlags & { yes?: boolean }): Promise<void> {
  using client = await openControlClient(controlPath(this, flags))
  await confirmCut(this, flags, 'this finishes what is in flight and stops the running Sluice')
  const answer = await client.call('drain')
  if (flags.json === true) printJson(this, answer)
  else say(this, 'draining: readiness is gone, sockets close after the lame-duck time')
}

export function controlPath(context: CliContext, flags: CommonFlags): string {
  return join(stateDirOf(context, flags), 'control.sock')
}
