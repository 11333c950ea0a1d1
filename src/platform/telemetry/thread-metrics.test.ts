import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { type MetricsThreadData, PATTERNS } from '../../../test/support/process/metrics-thread.ts'
import { isFull } from '../../../test/support/process/property.ts'
import { createMergedMetrics, createThreadMetrics, type ThreadMetrics } from './merged-metrics.ts'
import type { SharedFamily } from './metric-memory.ts'
import { createMetricsRegistry } from './metrics-registry.ts'

const READS = isFull ? 20_000 : 2000

async function startThread(metrics: ThreadMetrics, truth: SharedArrayBuffer, steps: number) {
  const data: MetricsThreadData = { steps, truth, previous: metrics.families }
  const worker = new Worker(new URL('../../../test/support/process/metrics-thread.ts', import.meta.url), {
    workerData: data,
  })
  // Before the wait: a short thread ends while the next one starts.
  const ended = once(worker, 'exit')
  await new Promise<void>((resolve, reject) => {
    worker.on('message', (message: SharedFamily | 'started') => {
      if (message === 'started') resolve()
      else metrics.add(message)
    })
    worker.on('error', reject)
  })
  return { worker, ended, [Symbol.asyncDispose]: async () => void (await worker.terminate()) }
}

async function startThreads(metrics: readonly ThreadMetrics[], truths: readonly SharedArrayBuffer[], steps: number) {
  const started = await Promise.all(metrics.map((one, at) => startThread(one, truths[at] as SharedArrayBuffer, steps)))
  const threads = new AsyncDisposableStack()
  for (const thread of started) threads.use(thread)
  return { all: started, [Symbol.asyncDispose]: () => threads.disposeAsync() }
}

function setUp(threads: number) {
  const metrics = Array.from({ length: threads }, () => createThreadMetrics())
  const truths = metrics.map(() => new SharedArrayBuffer(8))
  const own = createMetricsRegistry()
  own.counter('sluice_test_calls_total', 'x', { labels: { kind: ['a', 'b'] } }).inc({ kind: 'b' }, 1000)
  const merged = createMergedMetrics(own, () => metrics)
  return { metrics, truths, merged, calls: () => merged.value('sluice_test_calls_total', { kind: 'b' }) ?? 0 }
}

/** The values that a text has for each node. */
function* nodesOf(text: string): Generator<{ node: number; value: number }> {
  for (const [, node, value] of text.matchAll(/upstream="n(\d+)"[^}]*\} (\S+)/g))
    yield { node: Number(node), value: Number(value) }
}

describe('metrics of real threads', () => {
  test('are exact after their threads have ended, and go on in the next instances', async () => {
    const { metrics, truths, merged, calls } = setUp(2)
    const steps = 10_000
    for (let round = 1; round <= 2; round++) {
      await using threads = await startThreads(metrics, truths, steps)
      await Promise.all(threads.all.map(({ ended }) => ended))
      assert.equal(calls(), 1000 + 2 * round * steps)
      assert.equal(merged.value('sluice_test_seconds'), 2 * round * steps)
      const text = await merged.text()
      assert.match(text, new RegExp(`^sluice_test_seconds_bucket\\{le="1"\\} ${2 * round * steps}$`, 'm'))
      assert.match(text, new RegExp(`^sluice_test_seconds_sum ${2 * round * steps}$`, 'm'))
      assert.equal(merged.value('sluice_test_open'), 2)
      for (const one of metrics) one.ended()
      assert.equal(merged.value('sluice_test_open'), undefined)
    }
    // The label has no memory of its own in this list: it is part of its metrics.
    assert.equal(metrics[0]?.families.size, 6)
  })

  test('never go back, are never half-written and never under the name of another node, while threads are ended at any moment', async () => {
    const { metrics, truths, merged, calls } = setUp(2)
    let last = 0
    let lastSeconds = 0
    const seen = new Set<number>()
    const patterns = new Set<number>()
    for (let round = 0; round < (isFull ? 20 : 4); round++) {
      await using threads = await startThreads(metrics, truths, Number.POSITIVE_INFINITY)
      for (let read = 0; read < READS; read++) {
        const now = calls()
        assert.ok(now >= last, `${now} after ${last}`)
        last = now
        const seconds = merged.value('sluice_test_seconds') ?? 0
        assert.ok(seconds >= lastSeconds, `${seconds} after ${lastSeconds}`)
        lastSeconds = seconds
        for (const one of metrics) {
          const [value = 0] = one.readers.get('sluice_test_pattern')?.cellsAt({}) ?? []
          assert.ok(value === 0 || value === PATTERNS[0] || value === PATTERNS[1], `${value} is half-written`)
          patterns.add(value)
          for (const name of ['sluice_test_node_calls_total', 'sluice_test_node_level']) {
            const { labels, series } = one.readers.get(name)?.read() ?? { labels: [], series: [] }
            const names = labels.find((texts) => texts.some((text) => text?.startsWith('n'))) ?? []
            for (const { index, cells } of series) {
              const stride = name === 'sluice_test_node_level' ? 1 : 2
              const node = names[Math.floor(index / stride) % 3]
              if (cells[0] !== 0) assert.equal(node, `n${cells[0]}`)
              seen.add(cells[0] as number)
            }
          }
        }
        if (read % 500 === 0) {
          // Each thread counts a node once, so that the sum is the number or a multiple of it.
          for (const { node, value } of nodesOf(await merged.text())) assert.equal(value % node, 0)
        }
      }
      await Promise.all(threads.all.map(({ worker }) => worker.terminate()))
      for (const one of metrics) one.ended()
      const counts = truths.map((truth) => new Int32Array(truth))
      const [begun, done] = [0, 1].map((at) => counts.reduce((sum, each) => sum + (each[at] as number), 0))
      assert.ok(
        calls() >= 1000 + (done as number) && calls() <= 1000 + (begun as number),
        `${done} ${calls()} ${begun}`,
      )
    }
    assert.ok(seen.size > 20, `${seen.size} nodes were seen`)
    assert.ok(patterns.has(PATTERNS[0]) && patterns.has(PATTERNS[1]))
  })
})
