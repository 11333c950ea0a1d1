import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Plans, PlanTable } from './plan.ts'
import { createReportedPlans } from './reported-plans.ts'
import type { Snapshot } from './snapshot/snapshot.ts'
import type { AccessUpdate } from './thread-access.ts'

/** What the main thread has configured: the plans, and numbers by which a thread knows which of two updates is newer. */
export type Configuration = {
  /** Numbers the changes of the store and of the plans. */
  number(): number
  plans(): PlanTable
  setPlans(plans: Plans): void
  /** The snapshot of the store was replaced. */
  snapshotReplaced(): void
  /** What threads need to know of the newest change. */
  updateWith(snapshot: Snapshot): AccessUpdate
}

export function createConfiguration(given: Plans, lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>): Configuration {
  const reported = createReportedPlans(given, lifecycle)
  let plans = given
  let plansNumber = 0
  let number = 0
  return {
    number: () => number,
    plans: reported.current,
    setPlans(next) {
      reported.replace(next)
      plans = next
      plansNumber += 1
      number += 1
    },
    snapshotReplaced() {
      number += 1
    },
    updateWith: (snapshot) => ({ configuration: number, snapshot: snapshot.shared(), plans, plansNumber }),
  }
}
