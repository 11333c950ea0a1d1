import type { LimitChanges } from '../../../access/limit-rules.ts'
import type { Limits } from '../../../contract/limits.ts'
import type { AdminBodies } from '../../../contract/schemas/admin.ts'
import { ServiceError } from '../../../core/error.ts'

type WireLimits = NonNullable<AdminBodies['subCreate']['limits']>

/** Limits of a body: `"plan"` removes an override, null removes the limit. */
export function overridesOf(given: WireLimits = {}): LimitChanges {
  const { methods, ...others } = given
  const changes = Object.fromEntries(
    Object.entries(others).map(([name, value]) => [camelCase(name), value === 'plan' ? undefined : value]),
  ) as LimitChanges
  if (methods === undefined) return changes
  return { ...changes, methods: methods === 'plan' ? undefined : methodsOf(methods) }
}

/** An entry without a limit removes the override of its method. */
function methodsOf(given: Exclude<NonNullable<WireLimits['methods']>, 'plan'>): LimitChanges['methods'] {
  return Object.fromEntries(
    given.map(({ method, cost, per_second: perSecond }) => {
      const limit = {
        ...(cost === undefined ? {} : { cost }),
        ...(perSecond === undefined ? {} : { perSecond }),
      }
      return [method, Object.keys(limit).length === 0 ? undefined : limit]
    }),
  )
}

/** The overrides that `clear` names, by their names in JSON. */
export function clearedOf(names: readonly string[], overrides: Partial<Limits>): LimitChanges {
  const present = Object.keys(overrides)
  const cleared = names.flatMap((name) => (name === 'all' ? present : [camelCase(name)]))
  for (const name of cleared) {
    if (LIMIT_NAMES.has(name)) continue
    throw new ServiceError('invalid-value', `clear: "${name}" is not a limit`, {
      fix: 'Give names of limits such as units_per_second, or all.',
    })
  }
  return Object.fromEntries(cleared.map((name) => [name, undefined]))
}

const LIMIT_NAMES: ReadonlySet<string> = new Set<keyof Limits>([
  'unitsPerSecond',
  'sendsPerSecond',
  'unitsPerMonth',
  'wsConnections',
  'wsSubscriptions',
  'grpcStreams',
  'grpcAccountsPerStream',
  'grpcKinds',
  'grpcBlockedOwners',
  'grpcResume',
  'requestBytes',
  'batchItems',
  'methods',
])

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())
}
