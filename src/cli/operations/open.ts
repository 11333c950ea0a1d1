import { ServiceError } from '../../core/error.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import type { ChangeFlags, CliContext } from '../define.ts'
import type { RemoteApi } from '../remote/api.ts'
import { parseRemoteUrl, readRemoteToken } from '../remote/target.ts'
import { openSession, type Session } from '../session.ts'

/**
 * What a group of commands does, in two forms with the same records as results: on the store of this machine, and over the admin API of another.
 * The commands themselves read flags, ask and print, and do not know which one they have.
 */
export type Group<Operations> = {
  local(session: Session, flags: ChangeFlags): Operations
  remote(api: RemoteApi): Operations
}

export async function openOperations<Operations extends object>(
  group: Group<Operations>,
  context: CliContext,
  flags: ChangeFlags,
  mode: 'read' | 'write' | 'create' = 'write',
): Promise<Operations & AsyncDisposable> {
  if (context.remote !== undefined) {
    const api = await openRemote(context, flags)
    return { ...group.remote(api), [Symbol.asyncDispose]: async () => api[Symbol.dispose]() }
  }
  const session = await openSession(context, flags, mode)
  return { ...group.local(session, flags), [Symbol.asyncDispose]: () => session[Symbol.asyncDispose]() }
}

/** The admin API that the command line or the environment names. */
export async function openRemote(context: CliContext, flags: ChangeFlags): Promise<RemoteApi> {
  const { remote, process } = context
  if (remote === undefined) throw new ServiceError('usage', 'there is no --remote')
  const url = parseRemoteUrl(remote.url)
  const named = flags.state !== undefined ? '--state' : flags.config !== undefined ? '--config' : undefined
  if (named !== undefined)
    throw new ServiceError('usage', `${named} names files of this machine, and the command runs on ${url.origin}`, {
      fix: `Leave out ${named}, or --remote.`,
    })
  const token = await readRemoteToken(remote, process.env)
  const { openRemoteApi } = await import('../remote/api.ts')
  return openRemoteApi({ url, token, isDryRun: flags.dryRun === true }, { clock: systemClock, random: secureRandom })
}
