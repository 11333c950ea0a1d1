import {
  type AcceptedSubscription,
  AVAILABLE_FILTERS,
  DEFAULT_KINDS,
  type EventFilter,
  FIGURE_KINDS,
  FILTER_LIMITS,
  type Hex,
  RAW_EVENTS,
  type RawEventName,
  type StreamError,
  type StreamItem,
} from '../../contract/stream-events.ts'
import { didYouMean } from '../../core/did-you-mean.ts'

export type SubscriptionRules = {
  readonly itemsMax: number
  readonly blocked: ReadonlySet<RawEventName>
}

export type ParsedSubscription = { ok: true; subscription: AcceptedSubscription } | { ok: false; error: StreamError }

const { filters: FILTERS_MAX, topics: TOPICS_MAX, values: VALUES_MAX } = FILTER_LIMITS

const FIGURES: ReadonlySet<string> = new Set(FIGURE_KINDS)
const RAW: ReadonlySet<string> = new Set(RAW_EVENTS)

/** For clients that do not send a subscription. */
export const DEFAULT_SUBSCRIPTION: AcceptedSubscription = {
  events: DEFAULT_KINDS,
  filters: [],
  correlate: false,
  min_stage: 'Proposed',
}

/** Clients with equal keys share their frames. */
export function subscriptionKey({ events, filters, correlate }: AcceptedSubscription): string {
  return JSON.stringify([events.toSorted(), filters, correlate])
}

export function rawNamesOf({ events, correlate }: AcceptedSubscription, offered: readonly RawEventName[]) {
  if (correlate) return offered
  return events.filter((name): name is RawEventName => RAW.has(name))
}

/** A text message of a client. */
export function parseSubscribeMessage(text: string, rules: SubscriptionRules): ParsedSubscription {
  const message = parseJson(text)
  if (message === undefined) return invalid('The message is not JSON.')
  if (isJsonRpc(message))
    return invalid('This is the event stream: it takes no JSON-RPC. Send JSON-RPC as POST / over HTTP.')
  if (!isObject(message) || !('subscribe' in message))
    return invalid('Send {"subscribe":["TPS","Lifecycle"]} or {"subscribe":{"events":[…],"filters":[…]}}.')
  const unknown = Object.keys(message).filter((key) => key !== 'subscribe')
  if (unknown.length > 0) return invalid(`A message has the key subscribe alone, not ${listOf(unknown)}.`)
  return parseSubscription(message['subscribe'], rules)
}

/** A call or a batch of calls. Every frame of the stream has `seq` and one kind, so there is no JSON-RPC error for it. */
function isJsonRpc(message: unknown): boolean {
  const call = Array.isArray(message) ? message[0] : message
  return isObject(call) && 'jsonrpc' in call
}

/** The value of `?subscribe=`: names with commas, or one of the two forms as JSON. */
export function parseSubscribeQuery(text: string, rules: SubscriptionRules): ParsedSubscription {
  if (!/^\s*[[{]/.test(text)) {
    const names = text.split(',').map((name) => name.trim())
    return parseSubscription(names.length === 1 && names[0] === '' ? [] : names, rules)
  }
  const value = parseJson(text)
  return value === undefined ? invalid('The value of subscribe is not JSON.') : parseSubscription(value, rules)
}

function parseSubscription(value: unknown, rules: SubscriptionRules): ParsedSubscription {
  if (Array.isArray(value)) return parseExtended({ events: value }, rules)
  return isObject(value) ? parseExtended(value, rules) : invalid('subscribe is a list of names, or an object.')
}

function parseExtended(value: Record<string, unknown>, rules: SubscriptionRules): ParsedSubscription {
  const unknown = Object.keys(value).filter((key) => !['events', 'filters', 'correlate', 'min_stage'].includes(key))
  if (unknown.length > 0) return invalid(`subscribe has no field ${listOf(unknown)}.`)
  const { events, filters = [], correlate = false, min_stage = 'Proposed' } = value
  if (!Array.isArray(events)) return invalid('events is a list of names.')
  const items = [...new Set(events)]
  if (items.length === 0) return refuse('empty_subscribe', 'A subscription names at least one item.')
  if (items.length > rules.itemsMax)
    return refuse('subscribe_limit', `A subscription has at most ${rules.itemsMax} items, not ${items.length}.`)
  const badItems = items.filter((item) => typeof item !== 'string' || !(FIGURES.has(item) || RAW.has(item)))
  if (badItems.length > 0) return invalid(unknownItems(badItems))
  const blocked = (items as StreamItem[]).filter((item) => rules.blocked.has(item as RawEventName))
  if (blocked.length > 0) return invalid(`This service does not offer ${listOf(blocked)}; see blocked_events in Hello.`)
  if (min_stage !== 'Proposed')
    return invalid(
      'min_stage is "Proposed": events are sent as they happen. Subscribe to Lifecycle to learn when a block reaches a later stage.',
    )
  if (typeof correlate !== 'boolean') return invalid('correlate is true or false.')
  if (correlate && !items.includes('TxnHeaderStart')) return invalid('correlate needs TxnHeaderStart among the events.')
  const parsed = parseFilters(filters)
  if (typeof parsed === 'string') return invalid(parsed)
  return {
    ok: true,
    subscription: { events: items as StreamItem[], filters: parsed, correlate, min_stage },
  }
}

/** The filters, or an error message. */
function parseFilters(value: unknown): EventFilter[] | string {
  if (!Array.isArray(value)) return 'filters is a list.'
  if (value.length > FILTERS_MAX) return `A subscription has at most ${FILTERS_MAX} filters.`
  const filters: EventFilter[] = []
  for (const filter of value) {
    const parsed = parseFilter(filter)
    if (typeof parsed === 'string') return parsed
    filters.push(parsed)
  }
  return filters
}

function parseFilter(value: unknown): EventFilter | string {
  if (!isObject(value)) return 'A filter is an object.'
  const known = ['events', ...AVAILABLE_FILTERS]
  const unknown = Object.keys(value).filter((key) => !known.includes(key))
  if (unknown.length > 0) return `A filter has no field ${listOf(unknown)}; there are ${known.join(', ')}.`
  const { events, txn_index, log_index, address, topics } = value
  if (events !== undefined && !(Array.isArray(events) && events.length > 0 && events.every((name) => RAW.has(name))))
    return 'events of a filter is a list of raw event names.'
  if (!isRange(txn_index) || !isRange(log_index))
    return 'txn_index and log_index are {"min":n,"max":n} with whole numbers, one of them or both.'
  if (address !== undefined && !isChoice(address, 20))
    return `address is one of 20 bytes in hex, or a list of up to ${VALUES_MAX}.`
  const areTopics =
    topics === undefined ||
    (Array.isArray(topics) &&
      topics.length <= TOPICS_MAX &&
      topics.every((topic) => topic === null || isChoice(topic, 32)))
  if (!areTopics) return `topics are up to ${TOPICS_MAX} of 32 bytes in hex, lists of them, or null for any.`
  return {
    ...(events === undefined ? {} : { events: events as RawEventName[] }),
    ...(txn_index === undefined ? {} : { txn_index }),
    ...(log_index === undefined ? {} : { log_index }),
    ...(address === undefined ? {} : { address: lowerCase(address) as Hex }),
    ...(topics === undefined ? {} : { topics: (topics as unknown[]).map(lowerCase) as Hex[] }),
  }
}

function isRange(value: unknown): value is { min?: number; max?: number } | undefined {
  if (value === undefined) return true
  if (!isObject(value) || Object.keys(value).length === 0) return false
  return Object.entries(value).every(
    ([key, bound]) => (key === 'min' || key === 'max') && Number.isSafeInteger(bound) && (bound as number) >= 0,
  )
}

function isChoice(value: unknown, bytes: number): boolean {
  const isOne = (one: unknown): boolean =>
    typeof one === 'string' && one.length === 2 + 2 * bytes && /^0x[0-9a-fA-F]+$/.test(one)
  return Array.isArray(value) ? value.length > 0 && value.length <= VALUES_MAX && value.every(isOne) : isOne(value)
}

function lowerCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lowerCase)
  return typeof value === 'string' ? value.toLowerCase() : value
}

/** Names the unknown items and suggests a known one. */
function unknownItems(items: readonly unknown[]): string {
  const known = [...FIGURE_KINDS, ...RAW_EVENTS]
  const [suggestion] = items.flatMap((item) => (typeof item === 'string' ? (didYouMean(item, known) ?? []) : []))
  return `There is no item ${listOf(items)}.${suggestion === undefined ? '' : ` Did you mean ${suggestion}?`}`
}

function listOf(items: readonly unknown[]): string {
  return items
    .slice(0, 5)
    .map((item) => (JSON.stringify(item) ?? String(item)).slice(0, 64))
    .join(', ')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(message: string): ParsedSubscription {
  return refuse('invalid_subscribe', message)
}

function refuse(code: StreamError['code'], message: string): ParsedSubscription {
  return { ok: false, error: { code, message } }
}
