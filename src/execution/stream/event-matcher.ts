import {
  type AcceptedSubscription,
  type EventFilter,
  type Hex,
  RAW_EVENTS,
  type RawEventName,
} from '../../contract/stream-events.ts'
import type { FilterFields, RawEventPart } from '../source/message.ts'

/** A subscription with more keys is found by its event names alone: its keys would take more memory than the search for them is worth. */
export const EVENT_KEYS_MAX = 64

/** Whether a subscription includes a raw event. It has no state, so a resumed stream includes the same events. */
export type EventMatcher = (part: RawEventPart) => boolean

export function createEventMatcher(
  { events, filters, correlate }: AcceptedSubscription,
  blocked: ReadonlySet<RawEventName>,
): EventMatcher {
  const names = new Set<string>(events)
  const tests = filters.map(compileFilter)
  const testsOfName = new Map(RAW_EVENTS.map((name) => [name, tests.filter((test) => test.appliesTo(name))]))
  const passes = (name: RawEventName, fields: FilterFields): boolean => {
    if (!names.has(name)) return false
    const applying = testsOfName.get(name) ?? []
    return applying.length === 0 || applying.some((test) => test.passes(fields))
  }
  return ({ name, fields, header }) => {
    if (blocked.has(name)) return false
    if (passes(name, fields)) return true
    return correlate && header !== undefined && passes('TxnHeaderStart', header)
  }
}

type FilterTest = { appliesTo(name: RawEventName): boolean; passes(fields: FilterFields): boolean }

function compileFilter(filter: EventFilter): FilterTest {
  const names = filter.events === undefined ? undefined : new Set(filter.events)
  const addresses = filter.address === undefined ? undefined : setOf(filter.address)
  const topics = filter.topics?.map((topic) => (topic === null ? undefined : setOf(topic)))
  return {
    appliesTo: (name) => names === undefined || names.has(name),
    passes: (fields) =>
      isWithin(fields.txnIndex, filter.txn_index) &&
      isWithin(fields.logIndex, filter.log_index) &&
      (addresses === undefined || (fields.addresses?.some((address) => addresses.has(address)) ?? false)) &&
      (topics === undefined || hasTopics(fields.topics, topics)),
  }
}

function isWithin(value: number | undefined, range: { min?: number; max?: number } | undefined): boolean {
  if (range === undefined) return true
  if (value === undefined) return false
  return value >= (range.min ?? 0) && value <= (range.max ?? Number.POSITIVE_INFINITY)
}

function hasTopics(topics: readonly Hex[] | undefined, accepted: readonly (ReadonlySet<Hex> | undefined)[]): boolean {
  if (topics === undefined || topics.length < accepted.length) return false
  return accepted.every((choice, at) => choice === undefined || choice.has(topics[at] as Hex))
}

function setOf(values: Hex | readonly Hex[]): ReadonlySet<Hex> {
  return new Set(typeof values === 'string' ? [values] : values)
}

/** Each raw event that a subscription includes has one of these keys, as `addKeysOf` adds them. */
export function eventKeysOf({ events, filters }: AcceptedSubscription): ReadonlySet<string> {
  const names = RAW_EVENTS.filter((name) => events.includes(name))
  const keys = new Set<string>()
  for (const name of names) {
    const applying = filters.filter((filter) => filter.events?.includes(name) ?? true)
    if (applying.length === 0) keys.add(name)
    for (const filter of applying) for (const key of requiredValuesOf(filter) ?? [name]) keys.add(key)
  }
  return keys.size <= EVENT_KEYS_MAX ? keys : new Set(names)
}

/** Values of which an event must have one to pass; undefined for a filter of ranges alone. */
function requiredValuesOf({ address, topics }: EventFilter): Iterable<string> | undefined {
  const required = address ?? topics?.find((topic) => topic !== null)
  return required == null ? undefined : setOf(required)
}

/** The name and the values of a raw event. Those of the header are for subscriptions with `correlate`. */
export function addKeysOf({ name, fields, header }: RawEventPart, keys: Set<string>): void {
  keys.add(name)
  addValuesOf(fields, keys)
  if (header === undefined) return
  keys.add('TxnHeaderStart')
  addValuesOf(header, keys)
}

function addValuesOf({ addresses, topics }: FilterFields, keys: Set<string>): void {
  if (addresses !== undefined) for (const address of addresses) keys.add(address)
  if (topics !== undefined) for (const topic of topics) keys.add(topic)
}
