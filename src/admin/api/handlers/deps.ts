import type { PlanTable } from '../../../access/plan.ts'
import type { Provisioning } from '../../../access/provisioning/context.ts'
import type { NodeChanges } from '../../../access/provisioning/nodes.ts'
import type { CreatedSubscription } from '../../../access/provisioning/subscriptions.ts'
import type { AccessSnapshot } from '../../../access/snapshot/snapshot.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import type { ProductKey } from '../../../contract/products.ts'
import type { Random } from '../../../core/random.ts'
import type { PlanPrices } from '../../billing/options.ts'
import type { AdminCall } from '../handler.ts'
import type { RunningProcess } from './running.ts'

/** What the handlers need of the process. */
export type HandlerDeps = {
  readonly store: AccessStore
  readonly random: Random
  /** The records in memory, up to a second old. */
  snapshot(): AccessSnapshot
  plans(): PlanTable
  /** Products that can be provisioned. */
  readonly offered: ReadonlySet<ProductKey>
  /** Prices of plans; none where they are not configured. */
  readonly prices?: PlanPrices
  /** The handover card of a new subscription. */
  card(created: CreatedSubscription): string
  /** Throws for a shred destination that the service would refuse to send to. */
  checkDestination(address: string): void
  /** Throws for an address that is never connected to; returns warnings about those that the configuration does not allow. */
  checkNodeAddresses(addresses: NodeChanges): readonly string[]
  /** What the running process reports. */
  readonly running: RunningProcess
}

/** The change of a request, for the functions of `access/provisioning`. */
export function provisioningOf({ store, random }: HandlerDeps, call: AdminCall): Provisioning {
  const { actor, nowMs, isDryRun, ifRevision } = call
  return { store, random, actor, nowMs, dryRun: isDryRun, ifRevision }
}
