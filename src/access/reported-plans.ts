import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { createPlanTable, type Plans, type PlanTable } from './plan.ts'

/** Missing plans listed in the report. */
const UNKNOWN_PLANS_MAX = 5

export type ReportedPlans = {
  current(): PlanTable
  replace(plans: Plans): void
}

/** The plans of the configuration. A subscription whose plan is missing is reported when it is used: checking all of them at each change would block the event loop. */
export function createReportedPlans(given: Plans, lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>): ReportedPlans {
  const unknown = new Set<string>()
  let table = createPlanTable(given, report)

  function report(name: string): void {
    if (unknown.size >= UNKNOWN_PLANS_MAX) return
    unknown.add(name)
    lifecycle.degraded(
      'plans',
      `not configured, so their subscriptions have the smallest plan: ${[...unknown].join(', ')}`,
    )
  }

  return {
    current: () => table,
    replace(plans) {
      table = createPlanTable(plans, report)
      unknown.clear()
      lifecycle.recovered('plans')
    },
  }
}
