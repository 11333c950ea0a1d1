import { wireSubscription } from '../../../../access/limit-rules.ts'
import type { Subscription } from '../../../../access/store/model.ts'
import type { ChangeFlags, CliContext } from '../../../define.ts'
import { reportChange } from '../../../output/report-change.ts'

/** Prints a changed subscription as JSON, or what is true of it now. */
export function reportSub(
  context: CliContext,
  flags: ChangeFlags,
  subscription: Subscription,
  predicate: string,
): void {
  reportChange(context, flags, wireSubscription(subscription), `subscription ${subscription.name} ${predicate}`)
}
