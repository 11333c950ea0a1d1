import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { openListener } from './listener.ts'
import { createListenerMetrics } from './listener-metrics.ts'
import { silentLogger } from './logger.ts'
import { createMemoryGuard } from './memory-guard.ts'
import { createMetricsRegistry } from './metrics-registry.ts'
import { makeTestCert } from './test-cert.ts'

test('at 80 % no new streams, at 90 % no new sockets, and back', () => {
  const clock = createManualClock()
  let residentBytes = 0
  using guard = createMemoryGuard(
    { residentBytesMax: 1000 },
    { clock, log: silentLogger, residentBytes: () => residentBytes },
  )
  for (const [bytes, streams, sockets] of [
    [799, true, true],
    [800, false, true],
    [899, false, true],
    [900, false, false],
    [10, true, true],
  ] as const) {
    residentBytes = bytes
    clock.advance(500)
    assert.deepEqual([guard.mayOpenStream(), guard.mayAccept()], [streams, sockets], String(bytes))
  }
})

test('a door without memory turns connections away and counts them; the end of its certificate is told', async () => {
  using cert = makeTestCert('x', 30)
  const registry = createMetricsRegistry()
  const metricsOf = createListenerMetrics(registry, ['rpc', 'ws'])
  await using listener = await openListener(
    { host: '127.0.0.1', port: 0, tls: cert, mayAccept: () => false },
    { onConnection: () => assert.fail('was let in'), ...metricsOf('rpc') },
  )
  const socket = connect(listener.address.port, '127.0.0.1').on('error', () => {})
  await new Promise((resolve) => socket.once('close', resolve))
  assert.equal(registry.value('sluice_process_connections_refused_total', { door: 'rpc', reason: 'memory' }), 1)
  const daysLeft =
    ((registry.value('sluice_tls_not_after_timestamp_seconds', { door: 'rpc' }) ?? 0) - Date.now() / 1000) / 86_400
  assert(daysLeft > 29 && daysLeft < 31)
})
