import { endsWithin } from '../../access/ending.ts'
import { monthStartMs } from '../../access/quota/calendar.ts'
import type { MonthUnits } from '../../access/quota/ledger.ts'
import type { AccessSnapshot } from '../../access/snapshot/snapshot.ts'
import type { Customer, Subscription } from '../../access/store/model.ts'
import type { Limits } from '../../contract/limits.ts'
import type { NodeState } from '../../contract/node-states.ts'
import { DAY_MS } from '../../core/human-units.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import type { Condition } from './notice.ts'
import type { NoticesOptions } from './options.ts'
import { CONDITIONS_MAX } from './outbox.ts'

/** What the process knows about itself; undefined for a service that it does not run. */
export type Observed = {
  readonly nodes: readonly {
    readonly name: string
    readonly state: NodeState
    readonly reason: string
    /** 0 for a node that has not responded yet; until then its state is not known. */
    readonly slot: number
  }[]
  /** Destinations that shreds should be sent to, with the packets sent since the start. */
  readonly destinations:
    | readonly {
        readonly subscriptionId: string
        /** Another than `sending`: its packets are refused, and single ones are sent as probes. */
        readonly state: string
        readonly packets: number
        readonly lastFault: string | null
      }[]
    | undefined
  /** Whether shreds arrive: without a source no destination is sent any. */
  readonly hasShreds: boolean
  /** By listener, unix ms. */
  readonly certificates: ReadonlyMap<string, number>
  /** Unix ms of the last backup; of the first start where there is none. */
  readonly backupAtMs: number
}

const NODE_DOWN: Readonly<Record<NodeState, boolean>> = { healthy: false, drained: false, lagging: true, failing: true }

export type ProcessConditionsOptions = Pick<
  NoticesOptions,
  'nodeDownSeconds' | 'destinationSilentSeconds' | 'certificateDays' | 'backupDays'
>

/**
 * The conditions of nodes, destinations, certificates and backups. It remembers since when a node or destination is in its state. After a start that is
 * not known: until a node or destination was seen to work, or its time has passed, its condition is undecided.
 */
export function createProcessConditions(
  options: ProcessConditionsOptions,
  nameOf: (subscriptionId: string) => string,
): (observed: Observed, nowMs: number, monotonicMs: number) => Condition[] {
  const downSince = new Map<string, number>()
  const lastSent = new Map<string, { packets: number; atMs: number }>()
  const nodesSeen = new Set<string>()
  const destinationsSeen = new Set<string>()
  const downMs = options.nodeDownSeconds * 1000
  const silentMs = options.destinationSilentSeconds * 1000
  let firstMs: number | undefined

  function* nodes(observed: Observed, { monotonicMs, sinceStartMs }: Times): Generator<Condition> {
    const names = new Set(observed.nodes.map(({ name }) => name))
    for (const name of downSince.keys()) if (!names.has(name)) downSince.delete(name)
    for (const name of nodesSeen) if (!names.has(name)) nodesSeen.delete(name)
    for (const { name, state, reason, slot } of observed.nodes) {
      const isDown = NODE_DOWN[state]
      if (!isDown && (slot > 0 || state !== 'healthy' || sinceStartMs >= downMs)) nodesSeen.add(name)
      if (!isDown) downSince.delete(name)
      const since = downSince.get(name) ?? monotonicMs
      if (isDown) downSince.set(name, since)
      const isUndecided = !isDown || monotonicMs - since < downMs
      if (isUndecided && nodesSeen.has(name)) continue
      yield {
        key: `node.down ${name}`,
        kind: 'node.down',
        message: `node ${name} is ${state}: ${reason}`,
        data: { node: name, state, reason },
        isUndecided,
      }
    }
  }

  function* destinations(observed: Observed, { monotonicMs, sinceStartMs }: Times): Generator<Condition> {
    const current = observed.destinations ?? []
    const ids = new Set(current.map(({ subscriptionId }) => subscriptionId))
    for (const id of lastSent.keys()) if (!ids.has(id)) lastSent.delete(id)
    for (const id of destinationsSeen) if (!ids.has(id)) destinationsSeen.delete(id)
    for (const { subscriptionId, state, packets, lastFault } of current) {
      const before = lastSent.get(subscriptionId)
      // The packets of probes count as sent, though they are refused.
      const wasSent = state === 'sending' && packets !== (before?.packets ?? 0)
      if (wasSent) destinationsSeen.add(subscriptionId)
      const isSilent = before !== undefined && !wasSent && observed.hasShreds
      const atMs = isSilent ? before.atMs : monotonicMs
      lastSent.set(subscriptionId, { packets, atMs })
      const isUndecided = !isSilent || monotonicMs - atMs < silentMs
      if (isUndecided && (destinationsSeen.has(subscriptionId) || sinceStartMs >= silentMs)) continue
      const name = nameOf(subscriptionId)
      const cause = lastFault === null ? '' : `: ${lastFault}`
      yield {
        key: `shreds.destination-silent ${subscriptionId}`,
        kind: 'shreds.destination-silent',
        message: `no shred could be sent to the destination of ${name} for ${options.destinationSilentSeconds} s${cause}`,
        data: { subscription: name, subscription_id: subscriptionId, last_fault: lastFault },
        isUndecided,
      }
    }
  }

  function* certificates(observed: Observed, nowMs: number): Generator<Condition> {
    if (options.certificateDays === 0) return
    for (const [listener, notAfterMs] of observed.certificates) {
      if (notAfterMs > nowMs + options.certificateDays * DAY_MS) continue
      const ends = new Date(notAfterMs).toISOString()
      yield {
        key: `certificate.ending ${listener} ${ends}`,
        kind: 'certificate.ending',
        message: `the certificate of the listener ${listener} ${notAfterMs > nowMs ? 'ends' : 'has ended'} at ${ends}`,
        data: { listener, not_after: ends },
      }
    }
  }

  function* backup(observed: Observed, nowMs: number): Generator<Condition> {
    if (options.backupDays === 0 || observed.backupAtMs > nowMs - options.backupDays * DAY_MS) return
    yield {
      key: 'backup.missing',
      kind: 'backup.missing',
      message: `no backup was made for ${options.backupDays} days; make one with: sluice backup FILE`,
      data: { since: new Date(observed.backupAtMs).toISOString() },
    }
  }

  return (observed, nowMs, monotonicMs) => {
    firstMs ??= monotonicMs
    const times = { monotonicMs, sinceStartMs: monotonicMs - firstMs }
    return [
      ...nodes(observed, times),
      ...destinations(observed, times),
      ...certificates(observed, nowMs),
      ...backup(observed, nowMs),
    ]
  }
}

/** `sinceStartMs` is the time since the first observation. */
type Times = { readonly monotonicMs: number; readonly sinceStartMs: number }

export type CustomerFacts = {
  snapshot(): AccessSnapshot
  /** Units charged in the month of the quota, of the subscriptions that have used some. */
  monthUnits(): Iterable<MonthUnits>
  limitsOf(subscription: { readonly plan: string; readonly overrides: Partial<Limits> }): Pick<Limits, 'unitsPerMonth'>
}

/**
 * The conditions of subscriptions: those that end soon, and those that have used much of their month. In time slices: there may be very many. Ends
 * with one more than the outbox takes.
 */
export async function customerConditions(
  options: Pick<NoticesOptions, 'endsDays' | 'usagePercents'>,
  facts: CustomerFacts,
  { nowMs, slices }: { readonly nowMs: number; readonly slices: Pick<TimeSlices, 'isSpent' | 'yield'> },
): Promise<Condition[]> {
  const snapshot = facts.snapshot()
  const found: Condition[] = []
  for (const subscription of snapshot.subscriptions()) {
    if (slices.isSpent()) await slices.yield()
    if (found.length > CONDITIONS_MAX) return found
    const customer = snapshot.customer(subscription.customerId)
    const { id, name, validUntil } = subscription
    // The closest of the thresholds that are passed: one that begins near its end causes one notice.
    const days = options.endsDays
      .filter((span) => endsWithin(subscription, customer, { nowMs, spanMs: span * DAY_MS }))
      .toSorted((a, b) => a - b)[0]
    if (days === undefined || validUntil === null) continue
    const ends = new Date(validUntil).toISOString()
    found.push({
      key: `subscription.ending ${id} ${ends} ${days}`,
      kind: 'subscription.ending',
      message: `subscription ${name} ends at ${ends}; renew it with: sluice sub renew ${name} --until DATE`,
      data: { ...ownerOf(subscription, customer), valid_until: ends, days },
    })
  }
  for (const { subscriptionId, units: used, month: ofMonth } of facts.monthUnits()) {
    if (slices.isSpent()) await slices.yield()
    if (found.length > CONDITIONS_MAX) return found
    const subscription = snapshot.subscription(subscriptionId)
    if (subscription?.state !== 'active') continue
    const limit = facts.limitsOf(subscription).unitsPerMonth
    if (limit === null || limit === 0) continue
    const percent = options.usagePercents.filter((share) => used * 100 >= limit * share).toSorted((a, b) => b - a)[0]
    if (percent === undefined) continue
    const { id, name, customerId } = subscription
    const month = new Date(monthStartMs(ofMonth)).toISOString().slice(0, 7)
    found.push({
      key: `usage.threshold ${id} ${month} ${percent}`,
      kind: 'usage.threshold',
      message: `subscription ${name} has used ${percent} % of its ${limit} units of ${month}`,
      data: { ...ownerOf(subscription, snapshot.customer(customerId)), month, percent, used, limit },
    })
  }
  return found
}

function ownerOf({ id, name }: Subscription, customer: Customer | undefined) {
  return { subscription: name, subscription_id: id, customer: customer?.name ?? null }
}
