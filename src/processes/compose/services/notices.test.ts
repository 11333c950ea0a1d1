import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { createMetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import { observe } from './notices.ts'

test('a destination that refuses its packets is among those that shreds should be sent to', () => {
  const destinations = [
    { subscriptionId: 'sub_1', state: 'sending', packets: 900, lastFault: null },
    { subscriptionId: 'sub_2', state: 'paused', packets: 7, lastFault: 'refused' },
  ]
  const deps = {
    nodes: () => [],
    metrics: createMetricsRegistry(),
    shreds: { status: () => ({ destinations, sourceRates: [0, 12] }) as never },
  }
  const observed = observe(deps, tmpdir(), 0)
  assert.deepEqual(observed.destinations, destinations)
  assert.equal(observed.hasShreds, true)
})
