import { createFirstInOrder } from '../../../access/first-in-order.ts'
import { lookUp } from '../../../access/provisioning/context.ts'
import { type Counts, sumCounts } from '../../../access/store/counts.ts'
import type { Subscription, UsageSelection } from '../../../access/store/model.ts'
import type { Page } from '../../../access/store/page.ts'
import type { AccessView } from '../../../access/store/store.ts'
import {
  addUsageLine,
  groupUsage,
  USAGE_GROUPINGS,
  type UsageGrouping,
  type UsageLine,
  type UsagePeriod,
  type UsageSums,
  usagePeriodOf,
} from '../../../access/usage/report.ts'
import { isoTime, toWireJson } from '../../../contract/wire-json.ts'
import { ServiceError } from '../../../core/error.ts'
import { createTimeSlices, mapInSlices } from '../../../platform/process/time-slices.ts'
import type { AdminCall, AdminHandlers } from '../handler.ts'
import type { HandlerDeps } from './deps.ts'
import { textOf } from './query.ts'

/** Subscriptions with lines of their own; those with fewer units are one sum. */
const SUBSCRIPTIONS_SHOWN = 100
/** Subscriptions of a customer that are listed in one read of the store. */
const SUBSCRIPTIONS_AT_ONCE = 500
const LINES_MAX = 10_000
/** Rows of the store that one report reads: it reads one state of the store, which is not tidied up meanwhile. */
const ROWS_MAX = 2_000_000
/** Reports of more than one subscription at a time: each holds a connection to a remote store, of which a process has few. */
const REPORTS_MAX = 2
const NO_COUNTS: Counts = { calls: 0, units: 0, refused: 0 }
/** In the place of the subscription, for the sum of the others. */
const OTHERS = ''

type Grouping = UsageGrouping | 'interface'
type Selected = { readonly subscriptionId: string } | { readonly customerId: string } | 'all'
/** The ids of subscriptions, or all. */
type Selection = { readonly ids: readonly string[] } | 'all'
/** What a report reads, until its client is gone. */
type ReportRange = UsagePeriod & Pick<AdminCall, 'signal'>
/** One connection to the store, and one state of it. */
type View = Pick<AccessView, 'page' | 'usagePages' | 'methodUsagePages'>

export function usageHandlers(deps: HandlerDeps): Pick<AdminHandlers, 'usage'> {
  const { store, snapshot } = deps
  let reports = 0

  /** Runs a report unless too many are under way. One of a single subscription is short. */
  async function limited<T>(selected: Selected, report: (view: View) => Promise<T>): Promise<T> {
    if (selected !== 'all' && 'subscriptionId' in selected) return store.read(report)
    if (reports >= REPORTS_MAX)
      throw new ServiceError('busy', `${REPORTS_MAX} reports of usage are under way (limit: reports)`, {
        fix: 'Retry later, or choose a subscription.',
      })
    reports += 1
    try {
      return await store.read(report)
    } finally {
      reports -= 1
    }
  }

  async function selectedBy(call: AdminCall): Promise<Selected> {
    const subName = textOf(call, 'subscription')
    const customerName = textOf(call, 'customer')
    const sub = subName === undefined ? undefined : await lookUp(store, 'subscriptions', subName)
    const customer = customerName === undefined ? undefined : await lookUp(store, 'customers', customerName)
    if (sub !== undefined && customer !== undefined && sub.customerId !== customer.id)
      throw new ServiceError(
        'invalid-value',
        `subscription "${sub.name}" does not belong to customer "${customer.name}"`,
      )
    if (sub !== undefined) return { subscriptionId: sub.id }
    return customer === undefined ? 'all' : { customerId: customer.id }
  }

  async function selectionOf(view: View, selected: Selected, signal: AbortSignal): Promise<Selection> {
    if (selected === 'all') return 'all'
    if ('subscriptionId' in selected) return { ids: [selected.subscriptionId] }
    const ids: string[] = []
    for (let after: string | null = ''; after !== null; ) {
      throwIfGone(signal)
      const page: Page<Subscription> = await view.page('subscriptions', {
        where: selected,
        after,
        limit: SUBSCRIPTIONS_AT_ONCE,
      })
      ids.push(...page.items.map(({ id }) => id))
      after = page.next
    }
    return { ids }
  }

  /** Calls back with each row of the selection, in slices of time. */
  async function eachLine(
    view: View,
    selection: Selection,
    by: UsageGrouping,
    { signal, ...period }: ReportRange,
    onLine: (line: UsageLine) => void,
  ): Promise<void> {
    const slices = createTimeSlices()
    let rows = 0
    for await (const page of pagesOf(view, selection, by, period)) {
      throwIfGone(signal)
      rows += page.length
      if (rows > ROWS_MAX)
        throw new ServiceError('invalid-value', `a report reads at most ${ROWS_MAX} rows of usage`, {
          fix: 'Choose a shorter period, or a subscription.',
        })
      for (const line of page) onLine(line)
      if (slices.isSpent()) await slices.yield()
    }
  }

  async function* pagesOf(
    view: View,
    selection: Selection,
    by: UsageGrouping,
    period: UsagePeriod,
  ): AsyncGenerator<UsageLine[]> {
    const pages = by === 'method' ? (selected: UsageSelection) => methodPages(view, selected) : view.usagePages
    if (selection === 'all') return yield* pages(period)
    for (const subscriptionId of selection.ids) {
      // A part of its own, since a subscription without usage has no page.
      yield []
      yield* pages({ ...period, subscriptionId })
    }
  }

  async function* methodPages(view: View, selected: UsageSelection): AsyncGenerator<UsageLine[]> {
    for await (const page of view.methodUsagePages(selected))
      yield page.map(({ day, ...row }) => ({ ...row, hour: day }))
  }

  /** The subscriptions that get lines of their own, and how many there are. */
  async function topOf(
    view: View,
    selection: Selection,
    range: ReportRange,
  ): Promise<{ top: ReadonlySet<string>; all: number }> {
    if (selection !== 'all' && selection.ids.length <= SUBSCRIPTIONS_SHOWN)
      return { top: new Set(selection.ids), all: selection.ids.length }
    const units = new Map<string, number>()
    await eachLine(
      view,
      selection,
      'total',
      range,
      (line) => void units.set(line.subscriptionId, (units.get(line.subscriptionId) ?? 0) + line.units),
    )
    const top = createFirstInOrder<readonly [string, number]>(SUBSCRIPTIONS_SHOWN, ([, a], [, b]) => b - a)
    const slices = createTimeSlices()
    for (const entry of units) {
      top.add(entry)
      if (slices.isSpent()) await slices.yield()
    }
    return { top: new Set(top.items().map(([id]) => id)), all: units.size }
  }

  function wireOf(line: UsageLine, by: Grouping): object {
    const { subscriptionId, hour, interface: interfaceName, method, ...counts } = line
    const subscription = snapshot().subscription(subscriptionId)
    const customer = subscription && snapshot().customer(subscription.customerId)
    return {
      ...(by === 'hour' || by === 'day' ? { from: isoTime(hour) } : {}),
      ...(by === 'interface'
        ? {}
        : {
            subscription: subscription?.name ?? null,
            subscription_id: subscriptionId === OTHERS ? null : subscriptionId,
            customer: customer?.name ?? null,
            customer_id: customer?.id ?? null,
          }),
      interface: interfaceName,
      ...(by === 'method' ? { method } : {}),
      ...(toWireJson(counts) as object),
    }
  }

  async function report(view: View, selected: Selected, by: Grouping, range: ReportRange): Promise<object> {
    const selection = await selectionOf(view, selected, range.signal)
    const grouping: UsageGrouping = by === 'interface' ? 'total' : by
    const { top, all } = by === 'interface' ? { top: new Set<string>(), all: 0 } : await topOf(view, selection, range)
    const sums: UsageSums = new Map()
    let total: Counts = by === 'method' ? NO_COUNTS : { ...NO_COUNTS, bytes: 0 }
    let rest = total
    await eachLine(view, selection, grouping, range, (line) => {
      const isShown = top.has(line.subscriptionId)
      total = sumCounts(total, line)
      if (!isShown) rest = sumCounts(rest, line)
      addUsageLine(sums, isShown ? line : { ...line, subscriptionId: OTHERS }, grouping)
      if (sums.size > LINES_MAX)
        throw new ServiceError('invalid-value', `a report has at most ${LINES_MAX} lines`, {
          fix: 'Choose a shorter period, a subscription, or by=day.',
        })
    })
    const lines = groupUsage([...sums.values()], grouping).toSorted((a, b) => a.hour - b.hour || b.units - a.units)
    const others = Math.max(0, all - top.size)
    return {
      from: isoTime(range.fromMs),
      until: isoTime(range.toMs),
      by,
      items: await mapInSlices(lines, (line) => wireOf(line, by)),
      next_cursor: null,
      total: toWireJson(total),
      rest: others === 0 ? null : { subscriptions: others, ...(toWireJson(rest) as object) },
    }
  }

  return {
    async usage(call) {
      const by = groupingOf(textOf(call, 'by') ?? 'total')
      const request = { month: textOf(call, 'month'), since: textOf(call, 'since'), until: textOf(call, 'until'), by }
      const range = { ...usagePeriodOf(request, call.nowMs, ''), signal: call.signal }
      const selected = await selectedBy(call)
      return { body: await limited(selected, (view) => report(view, selected, by, range)) }
    },
  }
}

function throwIfGone(signal: AbortSignal): void {
  if (signal.aborted) throw new ServiceError('wrong-state', 'the client has closed the connection')
}

function groupingOf(text: string): Grouping {
  const known: readonly string[] = [...USAGE_GROUPINGS, 'interface']
  if (known.includes(text)) return text as Grouping
  throw new ServiceError('invalid-value', `"${text}" is not a grouping: use one of ${known.join(', ')}`)
}
