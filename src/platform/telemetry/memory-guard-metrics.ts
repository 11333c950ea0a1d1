import type { MetricsRegistry } from './metrics-registry.ts'

export function liveBytesMetric(registry: MetricsRegistry, read: () => number): void {
  registry.gauge('sluice_process_live_bytes', 'Heap and buffers in use, as last measured by the memory guard.', {
    read,
  })
}

export function collectionsMetric(registry: MetricsRegistry): { inc(): void } {
  return registry.counter(
    'sluice_process_memory_collections_total',
    'Garbage collections that the memory guard asked for.',
  )
}

export function heldBytesMetric(registry: MetricsRegistry, read: () => number): void {
  registry.gauge('sluice_process_held_bytes', 'Buffered bytes of requests and responses.', { read })
}
