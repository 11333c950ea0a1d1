import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../core/random.ts'
import { createMetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { gatewayMetrics } from './metrics.ts'

test('counts requests by method from a closed list; unknown methods add no series', async () => {
  using registry = createMetricsRegistry()
  const metrics = gatewayMetrics(registry)
  metrics.rpc.request('getSlot')
  metrics.rpc.request('other')
  const lines = async () => (await registry.text()).split('\n').length
  const before = await lines()
  const random = createSeededRandom(7)
  for (let at = 0; at < 10_000; at++) {
    const name = Buffer.from(random.bytes(12)).toString('latin1')
    metrics.rpc.request(name)
    metrics.rpc.refused(name)
  }
  for (const name of ['toString', '__proto__', 'constructor']) metrics.rpc.request(name)
  // One more: the refusals by a limit of no known name.
  assert.ok((await lines()) <= before + 1)
  assert.equal(registry.value('sluice_bundle_requests_total', { interface: 'rpc', method: 'other' }), 10_004)
  assert.equal(registry.value('sluice_bundle_requests_total', { interface: 'rpc', method: 'getSlot' }), 1)
})

test('keeps every metric family small enough for the limit of series', () => {
  using registry = createMetricsRegistry()
  gatewayMetrics(registry)
  const most = registry.describe().reduce((sum, { seriesMax }) => sum + seriesMax, 0)
  assert.ok(most <= 700, String(most))
})

test('counts by interface', () => {
  using registry = createMetricsRegistry()
  const metrics = gatewayMetrics(registry)
  metrics.ws.open.inc()
  metrics.grpc.messagesOut.inc(3)
  for (const method of ['Subscribe', 'SubscribeEntries']) metrics.grpc.request(method)
  metrics.grpc.refused('decodedFiltersPerStream')
  metrics.ws.refused('wsConnections')
  metrics.rpc.tookMs(12)
  const value = (name: string, labels?: Record<string, string>) => registry.value(`sluice_bundle_${name}`, labels)
  assert.equal(value('connections', { interface: 'ws' }), 1)
  assert.equal(value('messages_out_total', { interface: 'grpc' }), 3)
  assert.equal(value('messages_out_total', { interface: 'ws' }), 0)
  assert.equal(value('requests_total', { interface: 'grpc', method: 'Subscribe' }), 1)
  // A name that is not in the list is read as `other`, too.
  assert.equal(value('requests_total', { interface: 'grpc', method: 'other' }), undefined)
  assert.equal(value('refused_total', { interface: 'grpc', limit: 'other' }), undefined)
  assert.equal(value('refused_total', { interface: 'ws', limit: 'wsConnections' }), 1)
  assert.equal(value('response_seconds', { interface: 'rpc' }), 1)
})
