import {
  type AcceptedSubscription,
  type EventFilter,
  type Hex,
  RAW_EVENTS,
  type RawEventName,
} from '../../contract/stream-events.ts'
import type { FilterFields, RawEventPart } from '../source/message.ts'

/** Says of a raw event whether a subscription includes it. Nothing is remembered, so a resumed stream decides as the first one did. */
export type EventMatcher = (part: RawEventPart) => boolean

export function createEventMatcher(
  { events, filters, correlate }: AcceptedSubscription,
  blocked: ReadonlySet<RawEventName>,
): EventMatcher {
  const names = new Set<string>(events)
  const tests = filters.map(compileFilter)
  const aboutName = new Map(RAW_EVENTS.map((name) => [name, tests.filter((test) => test.isAbout(name))]))
  const passes = (name: RawEventName, fields: FilterFields): boolean => {
    if (!names.has(name)) return false
    const about = aboutName.get(name) ?? []
    return about.length === 0 || about.some((test) => test.passes(fields))
  }
  return ({ name, fields, header }) => {
    if (blocked.has(name)) return false
    if (passes(name, fields)) return true
    return correlate && header !== undefined && passes('TxnHeaderStart', header)
  }
}

type FilterTest = { isAbout(name: RawEventName): boolean; passes(fields: FilterFields): boolean }

function compileFilter(filter: EventFilter): FilterTest {
  const about = filter.events === undefined ? undefined : new Set(filter.events)
  const addresses = filter.address === undefined ? undefined : setOf(filter.address)
  const topics = filter.topics?.map((topic) => (topic === null ? undefined : setOf(topic)))
  return {
    isAbout: (name) => about === undefined || about.has(name),
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

function hasTopics(found: readonly Hex[] | undefined, wanted: readonly (ReadonlySet<Hex> | undefined)[]): boolean {
  if (found === undefined || found.length < wanted.length) return false
  return wanted.every((topic, at) => topic === undefined || topic.has(found[at] as Hex))
}

function setOf(given: Hex | readonly Hex[]): ReadonlySet<Hex> {
  return new Set(typeof given === 'string' ? [given] : given)
}
