import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Plan } from '../access/plan.ts'
import type { Provisioning } from '../access/provisioning/context.ts'
import type { Subscription } from '../access/store/model.ts'
import type { AccessStore } from '../access/store/store.ts'
import type { Limits } from '../contract/limits.ts'
import { isServiceError, ServiceError } from '../core/error.ts'
import { systemClock } from '../platform/process/clock.ts'
import { secureRandom } from '../platform/process/random.ts'
import { openAccessStore, sqliteStoreFile } from '../processes/compose/access/open-store.ts'
import type { Settings } from '../processes/compose/config/settings.ts'
import { currentActor } from '../processes/compose/process/deps.ts'
import type { ChangeFlags, CliContext, CommonFlags } from './define.ts'
import { findSettings } from './find-settings.ts'
import { runningElsewhere } from './locate.ts'

/** The access store and settings of one command. */
export type Session = Settings &
  AsyncDisposable & {
    readonly store: AccessStore
    readonly nowMs: number
    provisioning(flags: ChangeFlags): Provisioning
    /** The plan of this name; throws an error that lists the plans. */
    plan(name: string): Plan
    limitsOf(subscription: Subscription): Limits
  }

/** Opens the store for a command. Only `create` makes a store or a state folder where there is none, or migrates an older store; `read` is for commands that change nothing. */
export async function openSession(
  context: CliContext,
  flags: CommonFlags,
  mode: 'read' | 'write' | 'create' = 'write',
  found?: Settings,
): Promise<Session> {
  const settings = found ?? (await findSettings(context, flags))
  const { stateDir, plans } = settings
  if (mode !== 'create') refuseMissing(context, settings, mode)
  const env = context.process.env
  const store = await openAccessStore(settings, { env, check: 'quick', create: mode === 'create' }).catch(
    (error: unknown) => {
      throw isServiceError(error, 'not-found') ? noStore(context, stateDir, error.message) : error
    },
  )
  const nowMs = systemClock.nowMs()
  return {
    ...settings,
    store,
    nowMs,
    provisioning: ({ dryRun }) => ({
      store,
      nowMs,
      random: secureRandom,
      actor: currentActor(context.process.env),
      dryRun: dryRun === true,
    }),
    plan: plans.get,
    limitsOf: (subscription) => plans.limitsOf(subscription.plan, subscription.overrides),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

/** A command in the wrong folder must not make an empty store there, and not even a state folder. */
function refuseMissing(context: CliContext, { config, stateDir }: Settings, mode: 'read' | 'write'): void {
  const { store } = config.access
  const path = store.engine === 'sqlite' ? sqliteStoreFile(stateDir, store.file) : stateDir
  if (isThere(path)) return
  // An audit log without its store is a loss, which opening the store reports.
  if (mode === 'write' && isThere(join(stateDir, 'audit.log'))) return
  const missing = store.engine === 'sqlite' ? 'there is no access store' : 'this machine has no state folder'
  throw noStore(context, stateDir, `${missing} at ${path}: is this the right folder?`)
}

function noStore(context: CliContext, stateDir: string, message: string): ServiceError {
  return new ServiceError('not-found', message, {
    fix: `Name the state folder with --state DIR, or the configuration with --config FILE.${runningElsewhere(context, stateDir)} A new store is made by sluice serve, by sluice init, or by sluice customer add with --create-store.`,
  })
}

/** Throws if the folder is not readable, so that this is not mistaken for a missing file. */
function isThere(file: string): boolean {
  try {
    return statSync(file) !== undefined
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EACCES') return false
    throw new ServiceError('state-unwritable', `${dirname(file)} is not readable by this user`, {
      fix: 'Run the command as the user that runs Sluice, with sudo -u USER.',
      cause,
    })
  }
}
