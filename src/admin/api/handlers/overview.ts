import { SUBSCRIPTION_STATES, type SubscriptionState, stateOf } from '../../../access/effective-state.ts'
import { endsWithin } from '../../../access/ending.ts'
import { createFirstInOrder } from '../../../access/first-in-order.ts'
import { isoTime, toWireJson } from '../../../contract/wire-json.ts'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import type { AdminHandlers } from '../handler.ts'
import type { HandlerDeps } from './deps.ts'
import type { Refusal, Top } from './running.ts'

const ENDING_MS = 14 * 86_400_000
const SHOWN_MAX = 20
const NEAR_SHARE = 0.8
/** Counts of all subscriptions are kept this long. */
const COUNTS_MS = 10_000
const WINDOW_MS = 60_000
const SAMPLES_MAX = 60

type Counts = {
  readonly atMs: number
  readonly revision: number
  readonly states: Readonly<Record<SubscriptionState, number>>
  readonly plans: Readonly<Record<string, number>>
  readonly endingCount: number
  readonly ending: readonly { name: string; customer: string; valid_until: string | null }[]
}
type Ending = { readonly name: string; readonly customer: string; readonly validUntil: number }
type NearLimit = {
  readonly name: string
  readonly customer: string
  readonly units: number
  readonly limit: number
  readonly share: number
}

/** The state of the business and of the chain at a glance, from what the process has in memory. */
export function overviewHandlers(deps: HandlerDeps): Pick<AdminHandlers, 'overview'> {
  let counted: Promise<Counts> | undefined
  let countedAtMs = Number.NEGATIVE_INFINITY
  /** Refusals since the start, at earlier requests: their difference is that of the last minute. */
  const samples: { readonly atMs: number; readonly refusals: readonly Refusal[] }[] = []

  async function count(nowMs: number): Promise<Counts> {
    const slices = createTimeSlices()
    const snapshot = deps.snapshot()
    const states = Object.fromEntries(SUBSCRIPTION_STATES.map((state) => [state, 0])) as Record<
      SubscriptionState,
      number
    >
    const plans: Record<string, number> = {}
    let endingCount = 0
    const ending = createFirstInOrder<Ending>(SHOWN_MAX, (a, b) => a.validUntil - b.validUntil)
    for (const subscription of snapshot.subscriptions()) {
      if (slices.isSpent()) await slices.yield()
      const customer = snapshot.customer(subscription.customerId)
      states[stateOf(subscription, customer, nowMs)] += 1
      if (subscription.state !== 'cancelled') plans[subscription.plan] = (plans[subscription.plan] ?? 0) + 1
      if (!endsWithin(subscription, customer, { nowMs, spanMs: ENDING_MS })) continue
      endingCount += 1
      ending.add({ name: subscription.name, customer: customer?.name ?? '', validUntil: subscription.validUntil ?? 0 })
    }
    return {
      atMs: nowMs,
      revision: snapshot.revision,
      states,
      plans,
      endingCount,
      ending: ending
        .items()
        .map(({ name, customer, validUntil }) => ({ name, customer, valid_until: isoTime(validUntil) })),
    }
  }

  /** Subscriptions that have used most of the units of their month, the fullest first. */
  async function nearLimit(): Promise<{ readonly count: number; readonly next: readonly NearLimit[] }> {
    const slices = createTimeSlices()
    const snapshot = deps.snapshot()
    const next = createFirstInOrder<NearLimit>(SHOWN_MAX, (a, b) => b.share - a.share)
    let nearCount = 0
    for (const { subscriptionId, units } of deps.running.monthUnits()) {
      if (slices.isSpent()) await slices.yield()
      const subscription = snapshot.subscription(subscriptionId)
      if (subscription === undefined || subscription.state === 'cancelled') continue
      const limit = deps.plans().limitsOf(subscription.plan, subscription.overrides).unitsPerMonth
      if (limit === null || units < NEAR_SHARE * limit) continue
      const customer = snapshot.customer(subscription.customerId)?.name ?? ''
      nearCount += 1
      next.add({ name: subscription.name, customer, units, limit, share: units / limit })
    }
    return { count: nearCount, next: next.items() }
  }

  function refusalsOf({ atMs, refusals }: Top): object {
    const before = samples.find((sample) => atMs - sample.atMs <= WINDOW_MS) ?? { atMs, refusals }
    const known = new Map(before.refusals.map(({ part, reason, count: past }) => [`${part} ${reason}`, past]))
    samples.push({ atMs, refusals })
    while (samples.length > SAMPLES_MAX || atMs - (samples[0]?.atMs ?? atMs) > WINDOW_MS) samples.shift()
    const items = refusals
      .map(({ part, reason, count: now }) => ({ part, reason, count: now - (known.get(`${part} ${reason}`) ?? 0) }))
      .filter((each) => each.count > 0)
    return { seconds: Math.round((atMs - before.atMs) / 1000), items: items.toSorted((a, b) => b.count - a.count) }
  }

  /** Transactions that the indexer has written since the start. */
  async function transactions(): Promise<number | null> {
    const status = await deps.running.call('indexer').catch(() => null)
    return status?.ingest?.transactions ?? null
  }

  return {
    async overview(call) {
      const snapshot = deps.snapshot()
      if (call.nowMs - countedAtMs > COUNTS_MS || (await counted)?.revision !== snapshot.revision) {
        countedAtMs = call.nowMs
        counted = count(call.nowMs)
      }
      const counts = (await counted) as Counts
      const top = await deps.running.call('top')
      const near = await nearLimit()
      const shared = top.upstreams.filter(({ owner }) => owner === null)
      const settled = (top.sender?.landed ?? 0) + (top.sender?.expired ?? 0)
      return {
        body: {
          customers: snapshot.counts().customers,
          subscriptions: counts.states,
          ending_14d: { count: counts.endingCount, next: counts.ending },
          near_month_limit: near,
          refusals_last_minute: refusalsOf(top),
          nodes: toWireJson(shared.map(({ name, state, slot, lagSlots }) => ({ name, state, slot, lagSlots }))),
          chain: {
            slot: shared.length === 0 ? null : Math.max(...shared.map(({ slot }) => slot)),
            slot_ms: top.status.slotLength?.ms ?? null,
            execution_transactions_per_second: top.execution?.tps ?? null,
          },
          sender: top.sender === null ? null : { landed_share: settled === 0 ? null : top.sender.landed / settled },
          subscriptions_by_plan: counts.plans,
          live: {
            at_ms: top.atMs,
            pid: top.status.pid ?? null,
            calls: Object.values(top.calls).reduce((sum, one) => sum + one, 0),
            units: top.units,
            refused: top.refusals.reduce((sum, one) => sum + one.count, 0),
            connections: top.streams.ws + top.streams.grpc,
            transactions: await transactions(),
            landed: top.sender?.landed ?? null,
          },
        },
      }
    },
  }
}
