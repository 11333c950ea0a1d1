import { checkLimits } from '../../../access/limit-rules.ts'
import type { PlanTable } from '../../../access/plan.ts'
import type { LimitChanges } from '../../../access/provisioning/subscriptions.ts'
import type { Limits } from '../../../contract/limits.ts'
import type { AdminBodies } from '../../../contract/schemas/admin.ts'
import { ServiceError } from '../../../core/error.ts'

type WireLimits = NonNullable<AdminBodies['subCreate']['limits']>

/** Limits of a body: `"plan"` removes an override, null removes the limit. */
export function overridesOf(given: WireLimits = {}): LimitChanges {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [camelCase(name), value === 'plan' ? undefined : value]),
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

/** Throws unless the limits are valid together; returns notes about limits that cannot be reached any more. */
export function checkOverrides(
  plans: PlanTable,
  plan: string,
  { present, changes }: { readonly present: Partial<Limits>; readonly changes: LimitChanges },
): string[] {
  const merged = Object.entries({ ...present, ...changes }).filter(([, value]) => value !== undefined)
  return checkLimits(plans.limitsOf(plan, Object.fromEntries(merged) as Partial<Limits>), changes)
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())
}
