import type { Subscription } from '../../../../access/store/model.ts'
import { ServiceError } from '../../../../core/error.ts'
import type { ChangeFlags, CliContext } from '../../../define.ts'
import { openOperations } from '../../../operations/open.ts'
import { subscriptions } from '../../../operations/subscriptions.ts'
import { write } from '../../../output/print.ts'
import { LIMIT_FLAG_NAMES, type LimitFlags, overridesOf, parseCleared } from '../limits.ts'
import { reportSub } from './report-sub.ts'

export type LimitSubFlags = ChangeFlags & LimitFlags & { readonly plan?: string; readonly clear?: string }

/** Changes the plan and the limits that are named; all other overrides stay. */
export async function limitSub(this: CliContext, flags: LimitSubFlags, idOrName: string): Promise<void> {
  await using on = await openOperations(subscriptions, this, flags)
  const present = await on.find(idOrName)
  const plan = flags.plan === undefined ? undefined : await on.planName(flags.plan)
  const given = overridesOf(flags)
  const cleared = flags.clear === undefined ? undefined : parseCleared(flags.clear, present.overrides)
  const both = cleared?.find((name) => Object.hasOwn(given, name))
  if (both !== undefined)
    throw new ServiceError('usage', `${both} is both set and cleared`, { fix: 'Use one of the two flags.' })
  if (plan === undefined && cleared === undefined && Object.keys(given).length === 0) {
    throw new ServiceError(
      'usage',
      `a plan or at least one limit is required: --plan, --clear, ${LIMIT_FLAG_NAMES.join(', ')}`,
      { fix: 'For example: --units-per-second 300' },
    )
  }
  const { subscription, notes } = await on.limit({ present, plan, given, cleared })
  reportSub(this, flags, subscription, `now has plan ${subscription.plan} with ${ownLimits(subscription.overrides)}`)
  if (flags.json !== true) for (const note of notes) write(this, `note: ${note}`)
}

function ownLimits(overrides: Subscription['overrides']): string {
  const names = Object.keys(overrides).toSorted()
  return names.length === 0 ? 'no overrides' : `${names.length === 1 ? 'override' : 'overrides'}: ${names.join(', ')}`
}
