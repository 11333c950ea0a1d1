import { checkLimits } from '../../../../access/limit-rules.ts'
import { lookUp } from '../../../../access/provisioning/context.ts'
import { limitSubscription } from '../../../../access/provisioning/subscriptions.ts'
import type { Subscription } from '../../../../access/store/model.ts'
import { ServiceError } from '../../../../core/error.ts'
import type { ChangeFlags, CliContext } from '../../../define.ts'
import { write } from '../../../output/print.ts'
import { openSession } from '../../../session.ts'
import { LIMIT_FLAG_NAMES, type LimitFlags, overridesOf, parseCleared } from '../limits.ts'
import { reportSub } from './report-sub.ts'

export type LimitSubFlags = ChangeFlags & LimitFlags & { readonly plan?: string; readonly clear?: string }

/** Changes the plan and the limits that are named; all other overrides stay. */
export async function limitSub(this: CliContext, flags: LimitSubFlags, idOrName: string): Promise<void> {
  await using session = await openSession(this, flags)
  const present = await lookUp(session.store, 'subscriptions', idOrName)
  const plan = flags.plan === undefined ? undefined : session.plan(flags.plan).name
  const given = overridesOf(flags)
  const cleared = flags.clear === undefined ? [] : parseCleared(flags.clear, present.overrides)
  const [both] = cleared.filter((name) => Object.hasOwn(given, name))
  if (both !== undefined)
    throw new ServiceError('usage', `${both} is both set and cleared`, { fix: 'Use one of the two flags.' })
  const overrides = { ...given, ...Object.fromEntries(cleared.map((name) => [name, undefined])) }
  if (plan === undefined && flags.clear === undefined && Object.keys(overrides).length === 0) {
    throw new ServiceError(
      'usage',
      `a plan or at least one limit is required: --plan, --clear, ${LIMIT_FLAG_NAMES.join(', ')}`,
      { fix: 'For example: --units-per-second 300' },
    )
  }
  const merged = { ...present.overrides, ...overrides }
  const kept = Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined))
  const notes = checkLimits(session.plans.limitsOf(plan ?? present.plan, kept), overrides)
  const subscription = await limitSubscription(session.provisioning(flags), { subscription: idOrName, overrides, plan })
  reportSub(this, flags, subscription, `now has plan ${subscription.plan} with ${ownLimits(subscription.overrides)}`)
  if (flags.json !== true) for (const note of notes) write(this, `note: ${note}`)
}

function ownLimits(overrides: Subscription['overrides']): string {
  const names = Object.keys(overrides)
  return names.length === 0 ? 'no overrides' : `${names.length === 1 ? 'override' : 'overrides'}: ${names.join(', ')}`
}
