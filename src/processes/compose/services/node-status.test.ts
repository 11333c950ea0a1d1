import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeStatus } from '../../../upstreams/status.ts'
import { mergeNodeStatus } from './node-status.ts'

const NODE: NodeStatus = {
  name: 'a',
  owner: null,
  state: 'healthy',
  reason: '',
  slot: 10,
  lagSlots: 0,
  latencyMs: null,
  breaker: 'closed',
  callsInFlight: 1,
  recentCalls: 2,
  recentFailures: 0,
  wsConnections: 1,
  wsSubscriptions: 3,
  grpcStreams: 1,
}

test('counts are added up, and of the states the worst is shown with its reason', () => {
  const failing: NodeStatus = {
    ...NODE,
    state: 'failing',
    reason: 'breaker open',
    breaker: 'open',
    latencyMs: 4,
    slot: 12,
  }
  const [merged] = mergeNodeStatus([NODE], [[failing], [NODE]])
  assert.deepEqual(merged, {
    ...NODE,
    state: 'failing',
    reason: 'breaker open',
    breaker: 'open',
    latencyMs: 4,
    slot: 12,
    callsInFlight: 3,
    recentCalls: 6,
    wsConnections: 3,
    wsSubscriptions: 9,
    grpcStreams: 3,
  })
})

test('nodes of one name and different owners stay apart, and one that only a thread knows is left out', () => {
  const owned = { ...NODE, owner: 'sub_1' }
  const merged = mergeNodeStatus([NODE, owned], [[owned, { ...NODE, name: 'gone' }]])
  assert.deepEqual(
    merged.map(({ name, owner, callsInFlight }) => [name, owner, callsInFlight]),
    [
      ['a', null, 1],
      ['a', 'sub_1', 2],
    ],
  )
})
