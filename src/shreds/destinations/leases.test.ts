import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CHALLENGE_MS } from '../../access/provisioning/destinations.ts'
import type { Destination, Subscription } from '../../access/store/model.ts'
import { SKEW_MS } from '../../access/validity.ts'
import { type Candidate, candidatesOf, type DestinationsSnapshot, decideLeases, type LeaseRefusal } from './leases.ts'
import { createDestinationCheck, type DestinationRules } from './rules.ts'

const NOW = 1_800_000_000_000
const RULES: DestinationRules = {
  allowLoopback: false,
  allowPrivate: false,
  ownAddresses: new Set(),
  sourcePort: 20_000,
}

let made = 0
function candidate(
  destination: Partial<Destination> = {},
  subscription: Partial<Subscription> = {},
  more: Partial<Candidate> = {},
): Candidate {
  const id = subscription.id ?? `sub_${++made}`
  return {
    subscription: {
      id,
      revision: 1,
      customerId: 'cus_1',
      name: id,
      plan: 'starter',
      products: ['shreds-raw'],
      overrides: {},
      state: 'active',
      createdAt: 0,
      validUntil: null,
      ...subscription,
    },
    customerState: 'active',
    destination: {
      id,
      revision: 1,
      ip: '1.2.3.4',
      port: 20_001,
      proof: 'proven',
      paused: false,
      setAt: NOW - 86_400_000,
      ...destination,
    },
    pending: undefined,
    ...more,
  }
}
const decide = (...candidates: Candidate[]) =>
  decideLeases(candidates, { check: createDestinationCheck(RULES), leasesMax: 3 }, NOW)

const TABLE: readonly (readonly [string, LeaseRefusal | 'leased', Candidate])[] = [
  ['proven', 'leased', candidate()],
  ['vouched', 'leased', candidate({ proof: 'vouched' })],
  ['unproven', 'unproven', candidate({ proof: 'unproven' })],
  ['paused', 'paused', candidate({ paused: true })],
  ['suspended', 'suspended', candidate({}, { state: 'suspended' })],
  ['of a suspended customer', 'suspended', candidate({}, {}, { customerState: 'suspended' })],
  ['cancelled', 'cancelled', candidate({}, { state: 'cancelled' })],
  ['at its end, within the skew', 'leased', candidate({}, { validUntil: NOW - SKEW_MS })],
  ['past its end', 'expired', candidate({}, { validUntil: NOW - SKEW_MS - 1 })],
  ['in a private network', 'private', candidate({ ip: '10.0.0.1', proof: 'vouched' })],
  ['on loopback', 'loopback', candidate({ ip: '127.0.0.1', proof: 'vouched' })],
  ['a multicast group', 'multicast', candidate({ ip: '224.0.0.1', proof: 'vouched' })],
  ['an IPv4 address written as IPv6', 'ipv4-mapped', candidate({ ip: '::ffff:1.2.3.4' })],
  ['a port of the system', 'low-port', candidate({ port: 53 })],
]

for (const [name, expected, given] of TABLE) {
  test(`a destination that is ${name}: ${expected}`, () => {
    const { leases, refusals } = decide(given)
    assert.equal(refusals.get(given.subscription.id) ?? 'leased', expected)
    const { ip, port } = given.destination
    assert.deepEqual(leases, expected === 'leased' ? [{ subscriptionId: given.subscription.id, ip, port }] : [])
  })
}

test('gives an address only to the first subscription that set it, and no more leases than leasesMax', () => {
  const first = candidate()
  const second = candidate()
  const others = [20_002, 20_003, 20_004].map((port) => candidate({ port }))
  const { leases, refusals } = decide(first, second, ...others)
  assert.deepEqual(
    leases.map(({ port }) => port),
    [20_001, 20_002, 20_003],
  )
  assert.equal(refusals.get(second.subscription.id), 'taken')
  assert.equal(refusals.get(others[2]?.subscription.id ?? ''), 'too-many')
})

test('two spellings of one address are one address', () => {
  const [long, short] = [candidate({ ip: '2A00:0:0::5' }), candidate({ ip: '2a00::5' })]
  assert.deepEqual([...decide(long, short).refusals.values()], ['taken'])
  const waiting = { proof: 'unproven', setAt: NOW - 1000 } as const
  const { challenges } = decide(candidate({ ...waiting, ip: '2A00:0:0::5' }), candidate({ ...waiting, ip: '2a00::5' }))
  assert.equal(challenges.length, 1)
})

test('challenges an address once, however many subscriptions set it', () => {
  const waiting = { proof: 'unproven', setAt: NOW - 1000 } as const
  const first = candidate(waiting, { id: 'first' })
  const pending: Destination = { ...first.destination, id: 'first/pending' }
  const second = candidate(waiting, { id: 'second' })
  const elsewhere = candidate({ ...waiting, port: 20_009 }, { id: 'elsewhere' })
  const { challenges } = decide({ ...first, pending }, second, elsewhere)
  assert.deepEqual(
    challenges.map(({ subscriptionId, destination }) => [subscriptionId, destination.id]),
    [
      ['first', first.destination.id],
      ['elsewhere', elsewhere.destination.id],
    ],
  )
})

test('challenges a pending destination while the old one stays leased', () => {
  const waiting = { ip: '5.6.7.8', proof: 'unproven', setAt: NOW - 1000, id: 'x/pending' } as const
  const given = candidate({}, { id: 'x' })
  const pending: Destination = { ...given.destination, ...waiting }
  const { leases, challenges } = decide({ ...given, pending })
  assert.equal(leases[0]?.ip, '1.2.3.4')
  assert.deepEqual(challenges, [{ subscriptionId: 'x', destination: pending }])
  const none = (changes: Partial<Destination>, subscription: Partial<Subscription> = {}) =>
    assert.deepEqual(decide({ ...candidate({}, subscription), pending: { ...pending, ...changes } }).challenges, [])
  none({ paused: true })
  none({ proof: 'proven' })
  none({ setAt: NOW - CHALLENGE_MS })
  none({ ip: '10.0.0.1' })
  none({ ip: '255.255.255.255' })
  none({}, { state: 'suspended' })
  none({}, { state: 'cancelled' })
})

test('looks candidates up by destination, not by subscription', () => {
  const { subscription, destination } = candidate({}, { id: 'a' })
  const named = (id: string, changes: Partial<Destination> = {}): Destination => ({ ...destination, id, ...changes })
  const destinations = [
    named('late', { setAt: NOW }),
    named('b', { setAt: NOW - 5 }),
    named('a', { setAt: NOW - 5 }),
    named('a/pending', { proof: 'unproven' }),
    named('other-product'),
    named('gone'),
    named('orphan', { setAt: NOW + 1 }),
  ]
  const subscriptions = new Map<string, Subscription>([
    ['a', subscription],
    ['b', { ...subscription, id: 'b' }],
    ['late', { ...subscription, id: 'late' }],
    ['other-product', { ...subscription, id: 'other-product', products: ['bundle'] }],
    ['orphan', { ...subscription, id: 'orphan', customerId: 'cus_gone' }],
  ])
  let lookups = 0
  const snapshot: DestinationsSnapshot = {
    destinations: () => destinations,
    destination: (id) => destinations.find((each) => each.id === id),
    subscription(id) {
      lookups += 1
      return subscriptions.get(id)
    },
    customer: (id) =>
      id === 'cus_1' ? { id, revision: 1, name: id, contact: '', state: 'active', createdAt: 0 } : undefined,
  }
  const found = candidatesOf(snapshot)
  assert.deepEqual(
    found.map((each) => [each.subscription.id, each.customerState, each.pending?.id]),
    [
      ['a', 'active', 'a/pending'],
      ['b', 'active', undefined],
      ['late', 'active', undefined],
      ['orphan', 'suspended', undefined],
    ],
  )
  assert.equal(lookups, destinations.length)
})

test('an address is checked once, not at every decision, until its destination changes', () => {
  class Counted extends Set<string> {
    lookups = 0
    override has(value: string): boolean {
      this.lookups += 1
      return super.has(value)
    }
  }
  const ownAddresses = new Counted(['1.2.3.4'])
  const options = { check: createDestinationCheck({ ...RULES, ownAddresses }), leasesMax: 3 }
  const given = candidate()
  const refusals = (each: Candidate) => [...decideLeases([each], options, NOW).refusals.values()]
  assert.deepEqual(refusals(given), ['own-address'])
  const once = ownAddresses.lookups
  for (let times = 0; times < 10; times++) assert.deepEqual(refusals(given), ['own-address'])
  assert.equal(ownAddresses.lookups, once)
  assert.deepEqual(refusals({ ...given, destination: { ...given.destination, ip: '1.2.3.5' } }), [])
})
