import type { Limits, MethodLimit } from '../contract/limits.ts'
import { ServiceError } from '../core/error.ts'
import { overridesSchema } from './options.ts'
import { findPlanFaults, type PlanTable } from './plan.ts'

/** Changes of what a subscription overrides: `undefined` restores the limit of the plan. A method that is not named stays as it is. */
export type LimitChanges = {
  readonly [Name in Exclude<keyof Limits, 'methods'>]?: Limits[Name] | undefined
} & { readonly methods?: MethodChanges | undefined }

type MethodChanges = Readonly<Record<string, MethodLimit | undefined>>

/** Limits for JSON: methods are a list, because their names are data and must keep their case. */
export function wireLimits(limits: LimitChanges): object {
  const { methods, ...rest } = limits
  return methods === undefined ? rest : { ...rest, methods: wireMethods(methods) }
}

/** A subscription for JSON, with all its fields. */
export function wireSubscription(subscription: { readonly overrides: Partial<Limits> }): object {
  return { ...subscription, overrides: wireLimits(subscription.overrides) }
}

export function wireMethods(methods: MethodChanges): ({ readonly method: string } & MethodLimit)[] {
  return Object.entries(methods).map(([method, limit]) => ({ method, ...limit }))
}

/** What a subscription overrides after the changes. */
export function mergeOverrides(present: Partial<Limits>, changes: LimitChanges): Partial<Limits> {
  const methods = changes.methods && withoutUndefined({ ...present.methods, ...changes.methods })
  const isEmpty = methods !== undefined && Object.keys(methods).length === 0
  const merged = {
    ...present,
    ...changes,
    ...(methods === undefined ? {} : { methods: isEmpty ? undefined : methods }),
  }
  return withoutUndefined(merged) as Partial<Limits>
}

function withoutUndefined<Value>(record: Readonly<Record<string, Value | undefined>>): Record<string, Value> {
  const kept = Object.entries(record).filter((entry): entry is [string, Value] => entry[1] !== undefined)
  return Object.fromEntries(kept)
}

/**
 * Throws unless the changes are valid with the plan, by the rules for plans in the config. Returns notes about limits that were not set now and
 * cannot be reached any more, such as the sends per second of the plan: they limit nothing, so one limit can be changed alone.
 */
export function checkOverrides(
  plans: PlanTable,
  plan: string,
  { present, changes }: { readonly present: Partial<Limits>; readonly changes: LimitChanges },
): string[] {
  const merged = mergeOverrides(present, changes)
  // All own limits of methods, not only those that change: their number is bounded.
  const given = Object.fromEntries(
    Object.entries(merged).filter(([name]) => changes[name as keyof Limits] !== undefined),
  ) as Partial<Limits>
  const issues = (overridesSchema.safeParse(given).error?.issues ?? []).map(
    ({ path, message }) => `${path.join('.')}: ${message.replace(/^[A-Z][a-z ]+: /, '')}`,
  )
  if (issues.length > 0) throw new ServiceError('invalid-value', issues.join('; '))
  const faults = findPlanFaults(plans.limitsOf(plan, merged))
  const message = ({ limit, message }: (typeof faults)[number]) => `${limit} ${message}`
  const wrong = faults.filter(({ limit }) => given[limit] !== undefined)
  if (wrong.length > 0)
    throw new ServiceError('invalid-value', wrong.map(message).join('; '), { fix: 'Change these limits together.' })
  return faults.map(message)
}
