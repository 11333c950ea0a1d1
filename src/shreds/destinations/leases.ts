import { SKEW_MS } from '../../access/authorize.ts'
import { isOpenChallenge, pendingId } from '../../access/provisioning/destinations.ts'
import type { AccessSnapshot } from '../../access/snapshot/snapshot.ts'
import type { Destination, Subscription } from '../../access/store/model.ts'
import type { Lease } from '../relay/protocol.ts'
import { type DestinationRefusal, type DestinationRules, refusalOf } from './rules.ts'

/** Why a subscription with a destination gets nothing now. */
export type LeaseRefusal =
  | 'unproven'
  | 'paused'
  | 'suspended'
  | 'cancelled'
  | 'expired'
  /** Another subscription has the same address and port, and had it first. */
  | 'taken'
  /** More destinations than `shreds.destinations.max`. */
  | 'too-many'
  | DestinationRefusal

export type LeaseBook = {
  readonly leases: readonly Lease[]
  readonly refusals: ReadonlyMap<string, LeaseRefusal>
  /** Destinations that wait for their proof, with the record the challenge is about. */
  readonly challenges: readonly { readonly subscriptionId: string; readonly destination: Destination }[]
}

/** What the store says at one revision, before time and rules are looked at. */
export type Candidate = {
  readonly subscription: Subscription
  readonly customerState: 'active' | 'suspended'
  readonly destination: Destination
  readonly pending: Destination | undefined
}

/**
 * Everybody who has a destination, found by the destinations: of all subscriptions few have one, and this is done again at every change of the
 * store, whatever it was about.
 */
export function candidatesOf(snapshot: DestinationsSnapshot): Candidate[] {
  const candidates: Candidate[] = []
  for (const destination of snapshot.destinations()) {
    // One that waits for its proof has no subscription of its name.
    const subscription = snapshot.subscription(destination.id)
    if (!subscription?.products.includes('shreds-raw')) continue
    candidates.push({
      subscription,
      customerState: snapshot.customer(subscription.customerId)?.state ?? 'suspended',
      destination,
      pending: snapshot.destination(pendingId(subscription.id)),
    })
  }
  // Those set in the same millisecond keep one order among themselves too, whatever the snapshot's is: who comes first has the address.
  return candidates.toSorted(
    (a, b) => a.destination.setAt - b.destination.setAt || (a.subscription.id < b.subscription.id ? -1 : 1),
  )
}

export type DestinationsSnapshot = Pick<AccessSnapshot, 'destinations' | 'destination' | 'subscription' | 'customer'>

/** Who gets shreds now, and why the others do not. */
export function leasesOf(
  candidates: readonly Candidate[],
  options: { readonly rules: DestinationRules; readonly leasesMax: number },
  nowMs: number,
): LeaseBook {
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
        if (!isOpenChallenge(waiting, nowMs) || refusalOf(waiting, options.rules) !== undefined) continue
        // Provisioning refuses a place that another one names; whatever the store holds, an address that never answered gets no more.
        if (challenged.has(positionOf(waiting))) continue
        challenged.add(positionOf(waiting))
        challenges.push({ subscriptionId: subscription.id, destination: waiting })
      }
    }
    const position = positionOf(destination)
    const refusal =
      state ??
      faultOf(destination) ??
      refusalOf(destination, options.rules) ??
      (taken.has(position) ? 'taken' : leases.length >= options.leasesMax ? 'too-many' : undefined)
    if (refusal !== undefined) {
      refusals.set(subscription.id, refusal)
      continue
    }
    taken.add(position)
    leases.push({ subscriptionId: subscription.id, ip: destination.ip, port: destination.port })
  }
  return { leases, refusals, challenges }
}

function positionOf({ ip, port }: Destination): string {
  return `${ip} ${port}`
}

function stateOf({ subscription, customerState }: Candidate, nowMs: number): LeaseRefusal | undefined {
  if (subscription.state === 'cancelled') return 'cancelled'
  if (subscription.state === 'suspended' || customerState === 'suspended') return 'suspended'
  return subscription.validUntil !== null && nowMs > subscription.validUntil + SKEW_MS ? 'expired' : undefined
}

function faultOf(destination: Destination): LeaseRefusal | undefined {
  if (destination.proof === 'unproven') return 'unproven'
  return destination.paused ? 'paused' : undefined
}
