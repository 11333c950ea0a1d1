import { isOpenChallenge, pendingId } from '../../access/provisioning/destinations.ts'
import type { AccessSnapshot } from '../../access/snapshot/snapshot.ts'
import type { Customer, Destination, Subscription } from '../../access/store/model.ts'
import { SKEW_MS } from '../../access/validity.ts'
import type { Lease } from '../relay/protocol.ts'
import type { DestinationCheck, DestinationRefusal } from './rules.ts'

/** Why a subscription with a destination gets no shreds now. */
export type LeaseRefusal =
  | 'unproven'
  | 'paused'
  | 'suspended'
  | 'cancelled'
  | 'expired'
  /** Another subscription set the same address and port earlier. */
  | 'taken'
  /** More destinations than `shreds.destinations.max`. */
  | 'too-many'
  | DestinationRefusal

export type LeaseDecisions = {
  readonly leases: readonly Lease[]
  readonly refusals: ReadonlyMap<string, LeaseRefusal>
  /** Unproven destinations whose challenge is open. */
  readonly challenges: readonly { readonly subscriptionId: string; readonly destination: Destination }[]
}

/** A subscription with a destination at one store revision, before time and rules are applied. */
export type Candidate = {
  readonly subscription: Subscription
  readonly customerState: Customer['state']
  readonly destination: Destination
  readonly pending: Destination | undefined
}

/**
 * All subscriptions with a destination, oldest destination first. Iterates over the destinations, not the subscriptions: this runs at every
 * change of the store, and few subscriptions have a destination.
 */
export function candidatesOf(snapshot: DestinationsSnapshot): Candidate[] {
  const candidates: Candidate[] = []
  for (const destination of snapshot.destinations()) {
    // The id of a pending destination is not the id of a subscription, so pending ones are skipped here.
    const subscription = snapshot.subscription(destination.id)
    if (!subscription?.products.includes('shreds-raw')) continue
    candidates.push({
      subscription,
      customerState: snapshot.customer(subscription.customerId)?.state ?? 'suspended',
      destination,
      pending: snapshot.destination(pendingId(subscription.id)),
    })
  }
  // The subscription id breaks ties: the first of two subscriptions with one address gets it, whatever the order of the snapshot.
  return candidates.toSorted(
    (a, b) => a.destination.setAt - b.destination.setAt || (a.subscription.id < b.subscription.id ? -1 : 1),
  )
}

export type DestinationsSnapshot = Pick<AccessSnapshot, 'destinations' | 'destination' | 'subscription' | 'customer'>

/** Decides which candidates get shreds now, why the others do not, and which addresses to challenge. */
export function decideLeases(
  candidates: readonly Candidate[],
  options: { readonly check: DestinationCheck; readonly leasesMax: number },
  nowMs: number,
): LeaseDecisions {
  const leases: Lease[] = []
  const refusals = new Map<string, LeaseRefusal>()
  const challenges: { subscriptionId: string; destination: Destination }[] = []
  const taken = new Set<string>()
  const challenged = new Set<string>()
  for (const candidate of candidates) {
    const { subscription, destination, pending } = candidate
    const state = stateOf(candidate, nowMs)
    if (state === undefined) {
      for (const waiting of [destination, pending]) {
        if (!isOpenChallenge(waiting, nowMs)) continue
        const { address, refusal } = options.check(waiting)
        // Provisioning refuses an address that another subscription has; this check also holds when the store contains duplicates.
        if (refusal !== undefined || challenged.has(address)) continue
        challenged.add(address)
        challenges.push({ subscriptionId: subscription.id, destination: waiting })
      }
    }
    const { address, refusal: addressRefusal } = options.check(destination)
    const refusal =
      state ??
      faultOf(destination) ??
      addressRefusal ??
      (taken.has(address) ? 'taken' : leases.length >= options.leasesMax ? 'too-many' : undefined)
    if (refusal !== undefined) {
      refusals.set(subscription.id, refusal)
      continue
    }
    taken.add(address)
    leases.push({ subscriptionId: subscription.id, ip: destination.ip, port: destination.port })
  }
  return { leases, refusals, challenges }
}

function stateOf({ subscription, customerState }: Candidate, nowMs: number): LeaseRefusal | undefined {
  if (subscription.state === 'cancelled') return 'cancelled'
  if (subscription.state === 'suspended' || customerState !== 'active') return 'suspended'
  return subscription.validUntil !== null && nowMs > subscription.validUntil + SKEW_MS ? 'expired' : undefined
}

function faultOf(destination: Destination): LeaseRefusal | undefined {
  if (destination.proof === 'unproven') return 'unproven'
  return destination.paused ? 'paused' : undefined
}
