import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { systemClock } from '../../src/platform/process/clock.ts'
import { createMemoryCells, MemoryCells } from '../../src/platform/process/memory-cells.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { openMemoryGuard } from '../../src/processes/compose/process/memory.ts'
import type { MemoryThreadData } from '../support/process/memory-thread.ts'

const MIB = 2 ** 20

type Report = { readonly pressure: string; readonly collections: number }

function startMemoryThread(memory: SharedArrayBuffer, thread: number) {
  const data: MemoryThreadData = { memory, thread }
  const worker = new Worker(new URL('../support/process/memory-thread.ts', import.meta.url), { workerData: data })
  return {
    /** Makes the thread hold so many bytes, if given. */
    async ask(bytes?: number): Promise<Report> {
      worker.postMessage(bytes)
      const [report] = (await once(worker, 'message')) as [Report]
      return report
    },
    [Symbol.asyncDispose]: async () => void (await worker.terminate()),
  }
}

test('buffers of one thread put all threads under pressure until that thread has collected them', async () => {
  const memory = createMemoryCells({ threads: 3 })
  await using first = startMemoryThread(memory, 1)
  await using second = startMemoryThread(memory, 2)
  await Promise.all([first.ask(), second.ask()])
  const registry = createMetricsRegistry()
  const cells = new MemoryCells(memory, 0)
  const config = { memory: { residentBytesMax: process.memoryUsage.rss() + 500 * MIB } }
  using guard = await openMemoryGuard(
    config as unknown as Parameters<typeof openMemoryGuard>[0],
    { clock: systemClock, log: silentLogger, registry },
    cells,
  )
  assert.equal(guard.pressure(), 'none')
  await first.ask(550 * MIB)
  await until('main sees it', () => !guard.mayOpenStream(), 30_000)
  assert.equal((await second.ask()).pressure, guard.pressure())
  assert.ok((registry.value('sluice_process_live_bytes') ?? 0) > 550 * MIB)
  const { collections } = await first.ask(0)
  await until('the buffer is collected', () => guard.pressure() === 'none', 30_000)
  assert.ok((await first.ask()).collections > collections)
  assert.equal((await second.ask()).pressure, 'none')
})

test('memory that threads share is in the live bytes of none of them', async () => {
  const liveBytes = () => {
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = liveBytes()
  const shared = new SharedArrayBuffer(200 * MIB)
  new Uint8Array(shared).fill(1)
  assert.ok(liveBytes() - before < 50 * MIB)
  const code = `const { heapUsed, external } = process.memoryUsage()
    require('node:worker_threads').parentPort.postMessage(heapUsed + external)`
  const worker = new Worker(code, { eval: true, workerData: shared })
  const [inThread] = (await once(worker, 'message')) as [number]
  await worker.terminate()
  assert.ok(inThread < 50 * MIB)
})
