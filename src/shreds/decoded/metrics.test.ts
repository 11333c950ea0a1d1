import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { createEngineCounts, type EngineCounts } from './events.ts'
import { decodedMetrics } from './metrics.ts'
import type { DecodedThreadReport } from './protocol.ts'

test('data sets are counted by result, and the series continue where a new thread begins at zero', async () => {
  using registry = createMetricsRegistry()
  const metrics = decodedMetrics(registry)
  const counted = async () => {
    const text = await registry.text()
    return ['delivered', 'void', 'conflicting', 'undecodable'].map((result) =>
      Number(new RegExp(`^sluice_decoded_data_sets_total\\{result="${result}"\\} (\\d+)$`, 'm').exec(text)?.[1]),
    )
  }
  metrics.record(report({ dataSets: 7, dataSetsVoid: 2, dataSetsConflicting: 1, dataSetsUndecodable: 3 }))
  assert.deepEqual(await counted(), [7, 2, 1, 3])
  metrics.record(report({ dataSets: 9, dataSetsVoid: 2, dataSetsConflicting: 2, dataSetsUndecodable: 3 }))
  assert.deepEqual(await counted(), [9, 2, 2, 3])
  metrics.record(report({ dataSets: 4 }))
  assert.deepEqual(await counted(), [13, 2, 2, 3])
})

function report(counts: Partial<EngineCounts>): DecodedThreadReport {
  return {
    kind: 'report',
    counts: { ...createEngineCounts(), ...counts },
    newestSlot: undefined,
    openSlots: 0,
    heldBytes: 0,
    lookupTables: 0,
    unresolved: 0,
    dataSetsTooLarge: 0,
    inputDropped: 0,
    slots: [],
  }
}
