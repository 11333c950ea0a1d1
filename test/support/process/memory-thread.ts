import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { MemoryCells } from '../../../src/platform/process/memory-cells.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { openThreadMemoryGuard } from '../../../src/processes/compose/process/memory.ts'

export type MemoryThreadData = { readonly memory: SharedArrayBuffer; readonly thread: number }

/** A thread with a memory guard: holds so many bytes as it is asked to, and reports its collections and what is refused. */
if (parentPort !== null) {
  const port = parentPort
  const { memory, thread } = workerData as MemoryThreadData
  const registry = createMetricsRegistry()
  const guard = openThreadMemoryGuard({ clock: systemClock, registry }, new MemoryCells(memory, thread))
  let held: Buffer[] = []
  port.on('message', (bytes: number | undefined) => {
    if (bytes !== undefined) held = bytes === 0 ? [] : [Buffer.alloc(bytes, 1)]
    port.postMessage({
      held: held.length,
      pressure: guard.pressure(),
      collections: registry.value('sluice_process_memory_collections_total') ?? 0,
    })
  })
}
