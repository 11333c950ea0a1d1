import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CHALLENGE_MS } from '../../access/provisioning/destinations.ts'
import { whoamiRecord } from '../../contract/schemas/customer.ts'
import { whoami } from './whoami.ts'

const QUOTA = { limit: 10, remaining: 10, resetMs: 0 }

function show({
  nowMs = 0,
  month = {},
  buckets = [],
  products = ['bundle'],
  destinations = {},
}: Partial<World>): Shown {
  const access = {
    quota: () => ({ ...QUOTA, month: { limit: null, used: 7, resetMs: 5000, ...month }, buckets }),
    permits: { taken: () => ({}) },
    snapshot: () => ({ destination: (id: string) => destinations[id] }),
  }
  const caller = { subscription: { id: 'sub_1', name: 'a', products, validUntil: null }, limits: { methods: {} } }
  return whoami(access as never, caller as never, nowMs) as Shown
}

type World = {
  nowMs: number
  month: object
  buckets: object[]
  products: string[]
  destinations: Record<string, object>
}
type Shown = { month: { resets_at: string }; rate_limits: unknown; shreds?: unknown }

test('lists what is left of each limit per second, before it runs out', () => {
  const buckets = [
    { limit: 'sendsPerSecond', method: undefined, perSecond: 5, capacity: 50, remaining: 0, resetMs: 10_000 },
    { limit: 'methodPerSecond', method: 'getSlot', perSecond: 1, capacity: 10, remaining: 9, resetMs: 500 },
  ]
  const shown = whoamiRecord.shape.rate_limits.parse(show({ buckets }).rate_limits)
  assert.deepEqual(shown, [
    { name: 'sendsPerSecond', limit: 50, remaining: 0, resets_at: '1970-01-01T00:00:10.000Z' },
    { name: 'methodPerSecond', method: 'getSlot', limit: 10, remaining: 9, resets_at: '1970-01-01T00:00:00.500Z' },
  ])
})

test('a limit of 0 that is overdrawn has no time of reset', () => {
  const buckets = [
    { limit: 'sendsPerSecond', perSecond: 0, capacity: 0, remaining: 0, resetMs: Number.POSITIVE_INFINITY },
  ]
  const [shown] = whoamiRecord.shape.rate_limits.parse(show({ buckets }).rate_limits)
  assert.equal(shown?.resets_at, null)
})

test('the month resets at a whole second, although quota and wall clock are read at different times', () => {
  const nextMonth = Date.UTC(2026, 11)
  for (const nowMs of [nextMonth - 5054, nextMonth - 5000, nextMonth - 4999]) {
    assert.equal(show({ nowMs }).month.resets_at, '2026-12-01T00:00:00.000Z')
  }
})

test('shows the destination of shreds, and whether it is verified', () => {
  const products = ['bundle', 'shreds-raw']
  const current = { ip: '192.0.2.7', port: 20001, proof: 'unproven', paused: false, setAt: 0 }
  const next = { ip: '2001:db8::1', port: 20002, proof: 'unproven', paused: false, setAt: 0 }
  const shredsOf = (destinations: World['destinations'], nowMs = 0) =>
    whoamiRecord.shape.shreds.parse(show({ products, destinations, nowMs }).shreds)
  assert.deepEqual(shredsOf({}), { destination: null, pending: null })
  assert.deepEqual(shredsOf({ sub_1: current }), {
    destination: { address: '192.0.2.7:20001', verified: false, paused: false },
    pending: null,
  })
  const waiting = { sub_1: { ...current, proof: 'proven' }, 'sub_1/pending': next }
  assert.deepEqual(shredsOf(waiting, CHALLENGE_MS - 1), {
    destination: { address: '192.0.2.7:20001', verified: true, paused: false },
    pending: { address: '[2001:db8::1]:20002', verified: false, paused: false },
  })
  assert.equal(shredsOf(waiting, CHALLENGE_MS)?.pending, null, 'its challenge has expired')
  const closed = { sub_1: { ...current, proof: 'vouched' }, 'sub_1/pending': { ...next, paused: true } }
  assert.equal(shredsOf(closed)?.pending, null)
  assert.equal(show({}).shreds, undefined)
})
