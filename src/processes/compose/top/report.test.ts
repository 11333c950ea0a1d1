import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import { refuseLimit } from '../../../sender/accept/refusal.ts'
import { createRefusalReporter } from '../../../sender/accept/refusal-reporter.ts'
import { senderMetrics } from '../../../sender/metrics.ts'
import { createTopReport, type TopDeps } from './report.ts'

test('a transaction that the sender refused because of a limit is one refusal, under the name of the limit', () => {
  using registry = createMetricsRegistry()
  const metrics = senderMetrics(registry, [], {
    pending: () => 0,
    receipts: () => 0,
    knownSignatures: () => 0,
    connections: () => 0,
    tipEventsLost: () => 0,
  })
  const reporter = createRefusalReporter(metrics, undefined)
  for (let times = 0; times < 5; times++) reporter.report(refuseLimit('perPayerPerSecond', 5, 200), 'r')
  reporter.report({ code: 'tip-missing', message: '', data: {} }, 'r')
  metrics.received('accepted')
  const report = createTopReport({
    registry,
    clock: { monotonicMs: () => 0 },
    usage: { active: () => [] },
    snapshot: () => ({}),
    status: () => ({}),
    upstreams: () => [],
    streamsOf: () => 0,
    runs: { shreds: false, sender: true, indexer: false, execution: false },
  } as unknown as TopDeps)()
  assert.deepEqual(report.refusals, [
    { part: 'sender', reason: 'tip-missing', count: 1 },
    { part: 'sender', reason: 'perPayerPerSecond', count: 5 },
  ])
  assert.equal(report.sender?.refused, 6)
})
