import { join } from 'node:path'
import { ServiceError } from '../../../../core/error.ts'
import { isInstanceLocked } from '../../../../platform/files/instance-lock.ts'
import { delay, systemClock } from '../../../../platform/process/clock.ts'
import { openControlClient } from '../../../../platform/process/control-client.ts'
import { stateDirOf } from '../../../../processes/compose/config/settings.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printJson, write } from '../../../output/print.ts'

export async function reload(this: CliContext, flags: CommonFlags): Promise<void> {
  using client = await openControlClient(controlPath(this, flags))
  const response = await client.call('reload')
  if (flags.json === true) printJson(this, response)
  else for (const line of (response as { message: string[] }).message) write(this, line)
}

export async function drain(this: CliContext, flags: CommonFlags & { yes?: boolean }): Promise<void> {
  using client = await openControlClient(controlPath(this, flags))
  await confirmCut(this, flags, 'this finishes requests in flight and stops the running process')
  await client.call('drain')
  if (flags.json !== true) write(this, 'draining: not ready any more; sockets close after the lame-duck time')
  await stopped(stateDirOf(this, flags))
  if (flags.json === true) printJson(this, { stopped: true })
  else write(this, 'stopped')
}

const STOP_MS_MAX = 310_000
const LOOK_MS = 100

/** Waits until the instance lock is released and the next process can start. */
async function stopped(stateDir: string): Promise<void> {
  const state = { path: stateDir, file: (...parts: string[]) => join(stateDir, ...parts) }
  const deadline = systemClock.monotonicMs() + STOP_MS_MAX
  while (isInstanceLocked(state)) {
    if (systemClock.monotonicMs() > deadline) throw new ServiceError('instance-running', 'the process is still running')
    await delay(systemClock, LOOK_MS)
  }
}

export function controlPath(context: CliContext, flags: CommonFlags): string {
  return join(stateDirOf(context, flags), 'control.sock')
}
