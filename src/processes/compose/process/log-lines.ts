import type { AccessSnapshot } from '../../../access/snapshot/snapshot.ts'
import type { Clock } from '../../../core/clock.ts'
import { ServiceError } from '../../../core/error.ts'
import { createTimeSlices, type TimeSlices } from '../../../platform/process/time-slices.ts'
import { followSources, type LogSource } from '../../../platform/telemetry/log-tap.ts'
import { LOG_LEVELS, type LogLevel } from '../../../platform/telemetry/logger.ts'
import type { RefusalLog } from '../../../platform/telemetry/refusal-log.ts'

/** The request of `sluice logs tail`. */
export type LogRequest = {
  readonly sub?: string | undefined
  readonly level?: string | undefined
  /** Only lines with this `request_id`. */
  readonly request?: string | undefined
  readonly lines: number
  readonly follow: boolean
}

/** Lenient: the command line has validated the values. */
export function parseLogRequest(params: unknown): LogRequest {
  const { sub, level, request, lines, follow } = (params ?? {}) as Record<string, unknown>
  return {
    sub: typeof sub === 'string' ? sub : undefined,
    level: typeof level === 'string' && (LOG_LEVELS as readonly string[]).includes(level) ? level : undefined,
    request: typeof request === 'string' ? request : undefined,
    lines: typeof lines === 'number' && Number.isSafeInteger(lines) && lines >= 0 ? lines : 0,
    follow: follow === true,
  }
}

export type LogSources = {
  /** The current snapshot: a name may change while lines are followed. */
  readonly snapshot: () => AccessSnapshot
  readonly signal: AbortSignal
  readonly clock: Clock
  /** Counters of one subscription. */
  readonly ratesOf: (subscriptionId: string) => SubscriptionRates
  /** Time slices of the event loop, between which the search for a name yields. */
  readonly slices?: () => TimeSlices
}

/** Totals since the subscription was first active. */
export type SubscriptionRates = {
  readonly calls: number
  readonly units: number
  readonly refused: number
  readonly streams: number
}

/** Interval of the rates of a followed subscription. */
const RATES_MS = 10_000

/** The log, and the refused requests, which are read only to find one of them. */
export type ReadableLogs = { readonly log: LogSource; readonly refusals?: Pick<RefusalLog, 'of'> }

/**
 * The log lines that match, as they were written, so already masked and bounded, with the names of their subscription and customer added. Following
 * one subscription adds a line with its rates, which are not in the log.
 */
export async function* logLines(
  { log, refusals }: ReadableLogs,
  request: LogRequest,
  sources: LogSources,
): AsyncGenerator<string> {
  const read = request.request === undefined || refusals === undefined ? [log] : [log, refusals.of(request.request)]
  // Followed before the past lines are read, so that no line is missed.
  const following = request.follow ? followSources(read, sources.signal) : undefined
  const first = following?.next()
  const recent = request.lines === 0 ? [] : read.flatMap((source) => source.recent())
  const id = request.sub === undefined ? undefined : await subscriptionOf(request.sub, sources)
  const select = createLineFilter(request, id, sources.snapshot)
  const past = recent.flatMap(select)
  if (read.length > 1) past.sort((a, b) => timeOf(a).localeCompare(timeOf(b)))
  for (const line of past.slice(-request.lines)) yield line
  if (following === undefined || first === undefined) return
  let coming = first
  using rates = id === undefined || request.request !== undefined ? undefined : followRates(id, sources)
  for (;;) {
    const next = await Promise.race(rates === undefined ? [coming] : [coming, rates.next()])
    if (typeof next === 'string') {
      if (next !== '') yield* select(next)
      continue
    }
    if (next.done === true) return
    coming = following.next()
    yield* select(next.value)
  }
}

/** One line per interval, empty without activity. Each promise lives for one interval only, so racing it against many lines leaks nothing. */
function followRates(subscription: string, { clock, ratesOf }: LogSources): Disposable & { next(): Promise<string> } {
  let before = ratesOf(subscription)
  let reported = Promise.withResolvers<string>()
  const timer = clock.setRepeating(RATES_MS, () => {
    const now = ratesOf(subscription)
    reported.resolve(ratesLine(now, before))
    reported = Promise.withResolvers()
    before = now
  })
  return { next: () => reported.promise, [Symbol.dispose]: () => timer[Symbol.dispose]() }

  function ratesLine(now: SubscriptionRates, then: SubscriptionRates): string {
    const perSecond = (name: 'calls' | 'units' | 'refused') =>
      Math.round((Math.max(0, now[name] - then[name]) * 10_000) / RATES_MS) / 10
    const rates = { calls: perSecond('calls'), units: perSecond('units'), refused: perSecond('refused') }
    if (rates.calls === 0 && rates.refused === 0 && now.streams === then.streams) return ''
    const time = new Date(clock.nowMs()).toISOString()
    const record = { level: 'info', time, part: 'access', subscription, ...rates, streams: now.streams }
    return JSON.stringify({ ...record, msg: 'rates per second' })
  }
}

/** The line as it is printed, or nothing where it does not match. */
function createLineFilter(
  { level, request }: LogRequest,
  id: string | undefined,
  snapshot: () => AccessSnapshot,
): (line: string) => string[] {
  const least = level === undefined ? 0 : LOG_LEVELS.indexOf(level as LogLevel)
  const concerns = id === undefined ? () => true : createConcern(id, snapshot())
  return (line) => {
    const text = line.trimEnd()
    // Reports lost lines to a slow reader regardless of the filter.
    if (line.includes('"lost":')) return [text]
    const record = parse(line)
    if (record === undefined || !concerns(record) || LOG_LEVELS.indexOf(record['level'] as LogLevel) < least) return []
    if (request !== undefined && record['request_id'] !== request) return []
    return [withNames(text, record, snapshot())]
  }
}

/** The line with `subscription_name` and `customer_name` at its end, where it has their ids. */
function withNames(
  text: string,
  { subscription, customer }: Record<string, unknown>,
  snapshot: AccessSnapshot,
): string {
  const sub = typeof subscription === 'string' ? snapshot.subscription(subscription) : undefined
  const customerId = typeof customer === 'string' ? customer : sub?.customerId
  const names = {
    subscription_name: sub?.name,
    customer_name: customerId === undefined ? undefined : snapshot.customer(customerId)?.name,
  }
  const added = JSON.stringify(names).slice(1)
  return added === '}' || !text.endsWith('}') ? text : `${text.slice(0, -1)},${added}`
}

/** Matches records about the subscription, its customer, and its upstream nodes: the dedicated ones, or the shared ones. */
function createConcern(id: string, snapshot: AccessSnapshot): (record: Record<string, unknown>) => boolean {
  const customerId = snapshot.subscription(id)?.customerId
  const hasOwnNodes = [...snapshot.nodes()].some(({ subscriptionId }) => subscriptionId === id)
  return ({ part, subscription, customer, upstream }) => {
    if (subscription !== undefined) return subscription === id
    if (customer !== undefined) return customer === customerId
    return part === 'upstreams' && upstream !== undefined && !hasOwnNodes
  }
}

/** Log records contain the id of a subscription. A name is searched in time slices: there may be very many. */
async function subscriptionOf(
  idOrName: string,
  { snapshot: current, slices: createSlices = createTimeSlices }: Pick<LogSources, 'snapshot' | 'slices'>,
): Promise<string> {
  const snapshot = current()
  const byId = snapshot.subscription(idOrName)
  if (byId !== undefined) return byId.id
  const slices = createSlices()
  for (const { id, name } of snapshot.subscriptions()) {
    if (name === idOrName) return id
    if (slices.isSpent()) await slices.yield()
  }
  throw new ServiceError('not-found', `unknown subscription "${idOrName}"`, {
    fix: 'List them with: sluice sub list',
  })
}

function timeOf(line: string): string {
  return /"time":"([^"]+)"/.exec(line)?.[1] ?? ''
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined
  }
}
