import type { Plans } from '../access/plan.ts'
import { ServiceError } from '../core/service-error.ts'
import type { Logger } from '../host/logger.ts'
import type { Settings } from './commands/settings.ts'

export type Reload = () => Promise<{ changed: string[]; needRestart: string[]; says: string[] }>

type ReloadDeps = {
  readonly log: Logger
  readonly readSettings: () => Promise<Settings>
  readonly setPlans: (plans: Plans) => void
}

/** Values that take effect while running. Everything else is named as waiting for a restart. */
const LIVE = [/^log\.level$/, /^plans\./]

/** Reads the configuration again. A file with a mistake throws, and the one in force stays. */
export function reloadFrom(started: Settings, deps: ReloadDeps): Reload {
  let inForce = started
  return async () => {
    const next = await deps.readSettings().catch((error: unknown) => {
      if (!(error instanceof ServiceError)) throw error
      throw new ServiceError(error.code, `${error.message}\nthe configuration in force stays`, {
        ...(error.fix === undefined ? {} : { fix: error.fix }),
      })
    })
    const differing = differences(inForce, next)
    const changed = differing.filter((key) => LIVE.some((pattern) => pattern.test(key)))
    const needRestart = differing.filter((key) => !changed.includes(key))
    deps.log.level = next.config.log.level
    deps.setPlans(next.config.plans)
    inForce = {
      ...inForce,
      config: { ...inForce.config, log: next.config.log, plans: next.config.plans },
      loaded: next.loaded,
    }
    deps.log.info({ changed, needRestart }, 'configuration reloaded')
    const says = [
      ...(differing.length === 0 ? ['nothing changed'] : []),
      ...changed.map((key) => `${key} is in force`),
      ...needRestart.map((key) => `${key} needs a restart`),
    ]
    return { changed, needRestart, says }
  }
}

function differences(a: Settings, b: Settings): string[] {
  const values = (settings: Settings) =>
    new Map(settings.loaded.entries().map(({ path, value }) => [path.join('.'), JSON.stringify(value)]))
  const [before, after] = [values(a), values(b)]
  return [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key))
}
