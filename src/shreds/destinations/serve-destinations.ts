import type { Access } from '../../access/call-access.ts'
import type { Clock } from '../../core/clock.ts'
import { ownAddresses } from '../../platform/udp/socket.ts'
import type { ShredsMetrics } from '../metrics.ts'
import type { ShredsOptions } from '../options.ts'
import type { Lease } from '../relay/protocol.ts'
import type { RelayWorker } from '../relay/relay-in-worker.ts'
import type { Challenger } from './challenge.ts'
import { createLabelIndexes } from './label-indexes.ts'
import { candidatesOf, decideLeases, type LeaseDecisions } from './leases.ts'
import { createDestinationCheck, type DestinationRules } from './rules.ts'

/** Follows the access store: decides which destinations the relay sends to, and which ones are challenged. */
export type ServedDestinations = {
  /** The relay sends to the served destinations when this resolves, and follows their changes until it is disposed. */
  start(targets: ServedTargets): Promise<Disposable>
  /** The destinations the relay sends to now, as it has confirmed. */
  served(): readonly Lease[]
  refusals(): LeaseDecisions['refusals']
  /** The index of a served subscription for metric labels; undefined for one without a label of its own. */
  indexOf(subscriptionId: string): number | undefined
}

export type ServedTargets = {
  readonly relay: Pick<RelayWorker, 'ready' | 'setDestinations'>
  readonly challenger: Pick<Challenger, 'setChallenges' | 'tick'>
}

export type ServedDestinationsDeps = {
  readonly access: Pick<Access, 'snapshot' | 'onChange'>
  readonly clock: Clock
  readonly metrics: Pick<ShredsMetrics, 'setRefused'>
}

/** Leases also change with time: subscriptions expire and challenges fall due. */
const FOLLOW_MS = 500
const OWN_ADDRESSES_MS = 60_000

export function createServedDestinations(
  options: ShredsOptions['destinations'],
  { access, clock, metrics }: ServedDestinationsDeps,
): ServedDestinations {
  const indexes = createLabelIndexes()
  let decisions: LeaseDecisions = { leases: [], refusals: new Map(), challenges: [] }
  let served: readonly Lease[] = []

  async function start({ relay, challenger }: ServedTargets): Promise<Disposable> {
    let rules: DestinationRules = {
      allowLoopback: options.allowLoopback === true,
      allowPrivate: options.allowPrivate,
      ownAddresses: ownAddresses(),
      sourcePort: relay.ready.address.port,
    }
    let check = createDestinationCheck(rules)
    let candidates = candidatesOf(access.snapshot())

    function decide(): LeaseDecisions {
      return decideLeases(candidates, { check, leasesMax: options.max }, clock.nowMs())
    }

    function readOwnAddresses(): void {
      const found = ownAddresses()
      if (found.symmetricDifference(rules.ownAddresses).size === 0) return
      rules = { ...rules, ownAddresses: found }
      check = createDestinationCheck(rules)
    }

    function follow(): void {
      const next = decide()
      challenger.setChallenges(next.challenges)
      challenger.tick(clock.nowMs())
      metrics.setRefused(next.refusals.size)
      const isSame = isSameList(next.leases, decisions.leases)
      decisions = next
      if (isSame) return
      indexes.assign(next.leases)
      void relay.setDestinations(next.leases).then(() => {
        served = next.leases
      })
    }

    decisions = decide()
    served = decisions.leases
    indexes.assign(served)
    await relay.setDestinations(served)
    follow()

    const following = new DisposableStack()
    following.use(
      access.onChange(() => {
        candidates = candidatesOf(access.snapshot())
        follow()
      }),
    )
    for (const timer of [
      clock.setRepeating(FOLLOW_MS, follow),
      clock.setRepeating(OWN_ADDRESSES_MS, readOwnAddresses),
    ]) {
      timer.unref?.()
      following.use(timer)
    }
    return following
  }

  return {
    start,
    served: () => served,
    refusals: () => decisions.refusals,
    indexOf: indexes.of,
  }
}

function isSameList(a: readonly Lease[], b: readonly Lease[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ subscriptionId, ip, port }, at) => {
      const other = b[at]
      return other?.subscriptionId === subscriptionId && other.ip === ip && other.port === port
    })
  )
}
