import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFakeNode } from '../../../test/faults/fake-node.ts'
import { startFaultProxy } from '../../../test/faults/fault-proxy.ts'
import { createSeededRandom } from '../../core/random.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { parseUpstreamsOptions } from '../options.ts'
import { startUpstreams } from '../service.ts'

test('reports degraded while no node takes WebSocket connections, though calls are served', async () => {
  await using node = await startFakeNode()
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: node.ports.ws } })
  const reasons: string[] = []
  using registry = createMetricsRegistry()
  await using upstreams = await startUpstreams(
    parseUpstreamsOptions({
      allowPrivate: true,
      nodes: [{ name: 'a', rpc: node.rpc, ws: `ws://127.0.0.1:${proxy.port}` }],
    }),
    {
      log: silentLogger,
      clock: systemClock,
      random: createSeededRandom(1),
      registry,
      env: {},
      lifecycle: {
        degraded: (part, reason) => reasons.push(`${part}: ${reason}`),
        recovered: () => reasons.push('well'),
      },
    },
  )
  const isUp = () => upstreams.status()[0]?.wsConnections === 1
  await until('it is connected', isUp)
  assert.deepEqual([registry.value('sluice_upstreams_ws_down'), reasons.at(-1)], [0, 'well'])
  await proxy.disable()
  await until('it is down', () => registry.value('sluice_upstreams_ws_down') === 1)
  assert.equal(reasons.at(-1), 'upstreams: no node takes WebSocket connections')
  const [status] = upstreams.status()
  assert.deepEqual([status?.state, status?.reason], ['healthy', 'no WebSocket connection'])
  await proxy.enable()
  await until('it is back', isUp)
  assert.deepEqual([registry.value('sluice_upstreams_ws_down'), reasons.at(-1)], [0, 'well'])
})
