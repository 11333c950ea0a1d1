import { join } from 'node:path'
import { ServiceError } from '../core/error.ts'
import { type ControlClient, openControlClient } from '../platform/process/control-client.ts'
import type { ControlProtocol } from '../processes/compose/process/control-protocol.ts'
import type { CliContext, CommonFlags } from './define.ts'
import { locate } from './locate.ts'

/** The control socket of a running process. */
export type Control = ControlClient<ControlProtocol>

/** Connects to the process that a command is about. */
export function openControl(context: CliContext, flags: CommonFlags): Promise<Control> {
  return openControlAt(locate(context, flags).stateDir)
}

/** Connects to the process with this state folder. */
export function openControlAt(stateDir: string, options: { readonly responseMsMax?: number } = {}): Promise<Control> {
  return openControlClient<ControlProtocol>(join(stateDir, 'control.sock'), options)
}

/** What the process with this state folder responds. Undefined where no process runs on the state folder, or one without what is asked for. */
export async function askProcess<Result>(
  stateDir: string,
  ask: (control: Control) => Promise<Result>,
): Promise<NonNullable<Result> | undefined> {
  try {
    using control = await openControlAt(stateDir)
    return (await ask(control)) ?? undefined
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
