import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { senderMetrics } from './metrics.ts'
import { receiptOf } from './receipts/test-receipt.ts'

test('the landing of a transaction is counted once, that it ended without one once, and its tip once', async () => {
  using registry = createMetricsRegistry()
  const none = () => 0
  const metrics = senderMetrics(registry, ['path'], {
    pending: none,
    receipts: none,
    knownSignatures: none,
    connections: none,
    tipEventsLost: none,
  })
  const sent = { firstUnixMs: 1000, lastUnixMs: 1000, times: 1 }
  const receipt = receiptOf('a', { attempts: [{ path: 'path', to: 'node', response: 'taken', message: '', ...sent }] })
  const landed = { slot: 1, confirmation: 'processed', unixMs: 2000 } as const
  metrics.settled(Object.assign(receipt, { state: 'ended' }))
  metrics.settled(Object.assign(receipt, { state: 'expired' }))
  metrics.settled(
    Object.assign(receipt, { state: 'landed', landed: { ...landed, error: 'of a bank that was dropped' } }),
  )
  for (const slot of [2, 3]) metrics.settled(Object.assign(receipt, { landed: { ...landed, slot, error: null } }))
  const count = (state: string) => registry.value('sluice_sender_finished_total', { state }) ?? 0
  assert.deepEqual(['ended', 'expired', 'landed'].map(count), [1, 0, 1])
  assert.equal(registry.value('sluice_sender_tip_lamports_total'), 1_000_000)
  assert.match(await registry.text(), /^sluice_sender_time_to_land_seconds_count\{path="path"\} 1$/m)
})
