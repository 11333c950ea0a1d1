import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Plan } from '../access/plan.ts'
import type { Provisioning } from '../access/provisioning/context.ts'
import type { Subscription } from '../access/store/model.ts'
import type { AccessStore } from '../access/store/store.ts'
import type { Limits } from '../contract/limits.ts'
import { ServiceError } from '../core/error.ts'
import { systemClock } from '../platform/process/clock.ts'
import { secureRandom } from '../platform/process/random.ts'
import { openAccessStore } from '../processes/compose/access/open-store.ts'
import { loadSettings, type Settings } from '../processes/compose/config/settings.ts'
import { currentActor } from '../processes/compose/process/deps.ts'
import type { ChangeFlags, CliContext, CommonFlags } from './define.ts'
import { printJson, write } from './output/print.ts'

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

/** Opens the store for a command. With `read` it never creates a state folder. */
export async function openSession(
  context: CliContext,
  flags: CommonFlags,
  mode: 'read' | 'write' = 'write',
): Promise<Session> {
  const settings = await loadSettings(context, flags)
  const { config, stateDir, plans } = settings
  const { store: options } = config.access
  if (mode === 'read' && options.engine === 'sqlite' && !isThere(join(stateDir, options.file))) {
    throw new ServiceError('not-found', `there is no access store in ${stateDir}`, {
      fix: 'Start Sluice once (sluice serve), add a customer, or set the state folder with --state DIR.',
    })
  }
  const store = await openAccessStore(settings, { env: context.process.env, check: 'quick' })
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

/** Throws if the folder is not readable, so that this is not mistaken for a missing file. */
function isThere(file: string): boolean {
  try {
    return statSync(file).isFile()
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EACCES') return false
    throw new ServiceError('state-unwritable', `${dirname(file)} is not readable by this user`, {
      fix: 'Run the command as the user that runs Sluice, with sudo -u USER.',
      cause,
    })
  }
}

/** Prints the result of a command that changes something. */
export function done(context: CliContext, flags: ChangeFlags, sentence: string): void {
  if (flags.json === true && flags.dryRun === true) return printJson(context, { dryRun: true, message: sentence })
  write(context, flags.dryRun === true ? `dry run, nothing changed: ${sentence}` : sentence)
}
