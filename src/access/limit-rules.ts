import type { Limits } from '../contract/limits.ts'
import { ServiceError } from '../core/error.ts'
import { overridesSchema } from './options.ts'
import { findPlanFaults } from './plan.ts'
import type { LimitChanges } from './provisioning/subscriptions.ts'

/** Limits for JSON: methods are a list, because their names are data and must keep their case. */
export function wireLimits(limits: Partial<Limits>): object {
  const { methods, ...rest } = limits
  if (methods === undefined) return rest
  return { ...rest, methods: Object.entries(methods).map(([method, limit]) => ({ method, ...limit })) }
}

/**
 * Throws unless the overrides are valid with the plan, by the rules for plans in the config. Returns notes about limits that were not set now and
 * cannot be reached any more, such as the sends per second of the plan: they limit nothing, so one limit can be changed alone.
 */
export function checkLimits(limits: Limits, overrides: LimitChanges): string[] {
  const given = Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== undefined))
  const issues = (overridesSchema.safeParse(given).error?.issues ?? []).map(
    ({ path, message }) => `${path.join('.')}: ${message.replace(/^[A-Z][a-z ]+: /, '')}`,
  )
  if (issues.length > 0) throw new ServiceError('invalid-value', issues.join('; '))
  const faults = findPlanFaults(limits)
  const message = ({ limit, message }: (typeof faults)[number]) => `${limit} ${message}`
  const wrong = faults.filter(({ limit }) => given[limit] !== undefined)
  if (wrong.length > 0)
    throw new ServiceError('invalid-value', wrong.map(message).join('; '), { fix: 'Change these limits together.' })
  return faults.map(message)
}
