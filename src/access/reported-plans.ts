import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { createPlanTable, type Plans, type PlanTable } from './plan.ts'
import type { AccessSnapshot } from './snapshot/snapshot.ts'
import type { Subscription } from './store/model.ts'

/** Missing plans listed in the report. */
const MISSING_PLANS_MAX = 5

export type ReportedPlans = {
  current(): PlanTable
  replace(plans: Plans): void
  /** The plan of a caller is not configured. */
  missing(subscription: Pick<Subscription, 'id' | 'plan'>): void
  /** The store has changed: what is put right is no longer reported. */
  recheck(snapshot: Pick<AccessSnapshot, 'subscription'>): void
}

/**
 * The plans of the configuration. A plan that is missing is reported when a subscription that has it is used: checking all of them at each change would
 * block the event loop. The report names that subscription no longer than it has the plan; the next use of another one reports the plan again.
 */
export function createReportedPlans(given: Plans, lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>): ReportedPlans {
  /** The subscription that each of them was reported for. */
  const missing = new Map<string, string>()
  let table = createPlanTable(given)

  function report(): void {
    if (missing.size === 0) return lifecycle.recovered('plans')
    const names = [...missing.keys()].join(', ')
    lifecycle.degraded('plans', `not configured, so their subscriptions have the smallest plan: ${names}`)
  }

  return {
    current: () => table,
    replace(plans) {
      table = createPlanTable(plans)
      missing.clear()
      report()
    },
    missing({ id, plan }) {
      if (missing.has(plan) || missing.size >= MISSING_PLANS_MAX) return
      missing.set(plan, id)
      report()
    },
    recheck(snapshot) {
      if (missing.size === 0) return
      for (const [plan, id] of missing) {
        const subscription = snapshot.subscription(id)
        if (subscription?.plan !== plan || subscription.state === 'cancelled') missing.delete(plan)
      }
      report()
    },
  }
}
