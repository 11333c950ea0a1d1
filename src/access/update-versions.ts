import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Plans, PlanTable } from './plan.ts'
import { createReportedPlans, type ReportedPlans } from './reported-plans.ts'
import type { Snapshot } from './snapshot/snapshot.ts'
import type { AccessUpdate } from './thread-access.ts'

/** The plans as the main thread has them, and versions by which a thread knows which of two updates is newer. */
export type UpdateVersions = {
  /** Grows with each change of the store or of the plans. */
  version(): number
  plans(): PlanTable
  setPlans(plans: Plans): void
  /** A caller has a plan that is not configured. */
  readonly missingPlan: ReportedPlans['missing']
  /** The snapshot of the store was replaced by this one. */
  snapshotReplaced(snapshot: Snapshot): void
  /** What threads need to know of the newest change. */
  updateWith(snapshot: Snapshot): AccessUpdate
}

export function createUpdateVersions(
  given: Plans,
  lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>,
): UpdateVersions {
  const reported = createReportedPlans(given, lifecycle)
  let plans = given
  let plansVersion = 0
  let version = 0
  return {
    version: () => version,
    plans: reported.current,
    setPlans(next) {
      reported.replace(next)
      plans = next
      plansVersion += 1
      version += 1
    },
    missingPlan: reported.missing,
    snapshotReplaced(snapshot) {
      version += 1
      reported.recheck(snapshot)
    },
    updateWith: (snapshot) => ({ version, snapshot: snapshot.shared(), plans, plansVersion }),
  }
}
