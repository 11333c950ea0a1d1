import type { Plans } from '../../../access/plan.ts'
import { ServiceError } from '../../../core/error.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import type { Settings } from './settings.ts'

export type Reload = () => Promise<{ changed: string[]; needRestart: string[]; message: string[] }>

type ReloadDeps = {
  readonly log: Logger
  readonly readSettings: () => Promise<Settings>
  readonly setPlans: (plans: Plans) => void
}

/** Values that a reload applies. All others need a restart. */
const LIVE = [/^log\.level$/, /^plans\./]

/**
 * Reloads the configuration. An invalid file throws, and the present configuration stays in effect. The file is compared with the values in effect, not
 * with the last reload, so that a value that needs a restart is reported each time.
 */
export function reloadFrom(started: Settings, deps: ReloadDeps): Reload {
  const inForce = valuesOf(started)
  return async () => {
    const next = await deps.readSettings().catch((error: unknown) => {
      if (!(error instanceof ServiceError)) throw error
      throw new ServiceError(error.code, `${error.message}\nthe present configuration stays in effect`, {
        ...(error.fix === undefined ? {} : { fix: error.fix }),
      })
    })
    const given = valuesOf(next)
    const differing = [...new Set([...inForce.keys(), ...given.keys()])].filter(
      (key) => inForce.get(key) !== given.get(key),
    )
    const changed = differing.filter((key) => LIVE.some((pattern) => pattern.test(key)))
    const needRestart = differing.filter((key) => !changed.includes(key))
    deps.log.level = next.config.log.level
    deps.setPlans(next.config.plans)
    for (const key of changed) {
      const value = given.get(key)
      if (value === undefined) inForce.delete(key)
      else inForce.set(key, value)
    }
    deps.log.info({ changed, needRestart }, 'configuration reloaded')
    const message = [
      ...(differing.length === 0 ? ['nothing changed'] : []),
      ...changed.map((key) => `${key} is in effect`),
      ...needRestart.map((key) => `${key} needs a restart`),
    ]
    return { changed, needRestart, message }
  }
}

/** Every value by its path, as comparable text. */
function valuesOf({ loaded }: Settings): Map<string, string> {
  return new Map(loaded.entries().map(({ path, value }) => [path.join('.'), JSON.stringify(value)]))
}
