import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type AcceptedSubscription,
  type EventFilter,
  FILTER_LIMITS,
  type Hex,
  type RawEventName,
  type StreamItem,
} from '../../contract/stream-events.ts'
import { createSeededRandom } from '../../core/random.ts'
import type { FilterFields, RawEventPart } from '../source/message.ts'
import { EVENT_KEYS_MAX } from './event-matcher.ts'
import { StreamGroup } from './group.ts'
import { GroupIndex } from './group-index.ts'

const addressOf = (n: number): Hex => `0x${n.toString(16).padStart(40, '0')}`
const topicOf = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`

function groupOf(events: StreamItem[], filters: EventFilter[] = [], correlate = false): StreamGroup {
  const subscription: AcceptedSubscription = { events, filters, correlate, min_stage: 'Proposed' }
  return new StreamGroup(subscription, { key: '', groupKey: '', blocked: new Set(), deflate: undefined })
}

function partOf(name: RawEventName, fields: FilterFields, header?: FilterFields): RawEventPart {
  return { name, json: '{}', fields, header }
}

test('an event reaches the clients whose filters name one of its values, and no others are evaluated', () => {
  const index = new GroupIndex<StreamGroup>()
  const groups = Array.from({ length: 2000 }, (_, at) => groupOf(['TxnLog'], [{ address: addressOf(at) }]))
  for (const group of groups) index.add(group)
  const event = partOf('TxnLog', { addresses: [addressOf(7)], topics: [] })
  assert.deepEqual([...index.find([event])], [groups[7]])
  index.delete(groups[7] as StreamGroup)
  assert.equal(index.find([event]).size, 0)
})

test('a subscription with very many values has few keys', () => {
  const values = Array.from({ length: FILTER_LIMITS.values }, (_, at) => addressOf(at))
  const keysOf = (filters: EventFilter[]) => groupOf(['TxnLog', 'TPS'], filters).eventKeys
  assert.equal(keysOf([{ address: values }]).size, EVENT_KEYS_MAX)
  assert.deepEqual([...keysOf([{ address: values }, { address: addressOf(999) }])], ['TxnLog'])
})

test('every group that includes an event is found, whatever its filters', () => {
  const random = createSeededRandom(1)
  const below = (n: number): number => Math.floor(random.float() * n)
  const listOf = <Value>(most: number, make: () => Value): Value[] => Array.from({ length: below(most + 1) }, make)
  const some = <Value>(make: () => Value): Value | undefined => (below(2) === 0 ? make() : undefined)
  const NAMES = ['TxnLog', 'TxnHeaderStart', 'TxnCallFrame', 'BlockStart'] as const
  const nameOf = (): RawEventName => NAMES[below(NAMES.length)] as RawEventName
  const address = (): Hex => addressOf(below(6))
  const topic = (): Hex => topicOf(below(4))
  const filterOf = (): EventFilter => {
    const given = {
      events: some(() => [nameOf(), ...listOf(1, nameOf)]),
      txn_index: some(() => ({ min: below(3) })),
      address: some(() => (below(2) === 0 ? address() : [address(), address()])),
      topics: some(() => listOf(3, () => (below(3) === 0 ? null : below(2) === 0 ? topic() : [topic(), topic()]))),
    }
    return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  }
  const fieldsOf = (): FilterFields => ({
    ...(below(3) === 0 ? {} : { txnIndex: below(4) }),
    ...(below(3) === 0 ? {} : { addresses: [address(), address()] }),
    ...(below(3) === 0 ? {} : { topics: listOf(3, topic) }),
  })
  let included = 0
  let skipped = 0
  for (let round = 0; round < 200; round++) {
    const index = new GroupIndex<StreamGroup>()
    const groups = Array.from({ length: 10 }, () => {
      const isCorrelated = below(3) === 0
      const events: StreamItem[] = [
        ...listOf(2, nameOf),
        ...(isCorrelated ? (['TxnHeaderStart'] as const) : ['TPS' as const]),
      ]
      return groupOf(events, listOf(3, filterOf), isCorrelated)
    })
    for (const group of groups) index.add(group)
    const events = Array.from({ length: 3 }, () => partOf(nameOf(), fieldsOf(), some(fieldsOf)))
    const found = index.find(events)
    for (const group of groups) {
      const isIncluded = group.frameOf({ seq: 1, kind: 'Events', events, bytes: 6 }) !== undefined
      if (isIncluded) included += 1
      if (!found.has(group)) skipped += 1
      assert.ok(found.has(group) || !isIncluded, JSON.stringify([group.subscription, events]))
    }
  }
  assert.ok(included > 200 && skipped > 200, `${included} included, ${skipped} skipped`)
})
