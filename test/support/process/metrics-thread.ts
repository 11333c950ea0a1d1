import { parentPort, workerData } from 'node:worker_threads'
import type { SharedFamily } from '../../../src/platform/telemetry/metric-memory.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'

export type MetricsThreadData = {
  /** Without an end: counts until the thread is ended. */
  readonly steps: number
  readonly previous: ReadonlyMap<string, SharedFamily>
  /** Two integers: steps begun and steps done, over all instances of the thread. */
  readonly truth: SharedArrayBuffer
}

/** Two values whose halves differ: a value that is read half-written is neither. */
export const PATTERNS = [1.000_000_000_1e300, -2.123_456_789e-300] as const

/** Node `n7` counts 7, once: any other value was counted for another name. */
const NODES = 1000

if (parentPort !== null) {
  const port = parentPort
  const { steps, previous, truth } = workerData as MetricsThreadData
  const registry = createMetricsRegistry({ shared: { previous, onFamily: (family) => port.postMessage(family) } })
  const upstream = registry.changingLabel('upstream', 2)
  const calls = registry.counter('sluice_test_calls_total', 'x', { labels: { kind: ['a', 'b'] } }).with({ kind: 'b' })
  const seconds = registry.histogram('sluice_test_seconds', 'x', { buckets: [1, 2] }).with({})
  const open = registry.gauge('sluice_test_open', 'x').with({})
  const pattern = registry.gauge('sluice_test_pattern', 'x', { merge: 'max' }).with({})
  const nodeCalls = registry.counter('sluice_test_node_calls_total', 'x', {
    labels: { way: ['x'], upstream, kind: ['a'] },
  })
  const nodeLevel = registry.gauge('sluice_test_node_level', 'x', { labels: { upstream } })
  registry.refresh()
  const counts = new Int32Array(truth)
  port.postMessage('started')

  for (let step = 0; step < steps; step++) {
    Atomics.add(counts, 0, 1)
    calls.inc()
    seconds.observe(1)
    open.set(1)
    pattern.set(PATTERNS[step % 2] as number)
    if (step % 8 === 0) {
      const number = 1 + ((step / 8) % NODES)
      const node = `n${number}`
      upstream.acquire(node)
      nodeCalls.inc({ way: 'x', upstream: node, kind: 'a' }, number)
      nodeLevel.set(number, { upstream: node })
      upstream.release(`n${1 + ((number + NODES - 2) % NODES)}`)
    }
    Atomics.add(counts, 1, 1)
  }
}
