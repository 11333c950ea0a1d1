import assert from 'node:assert/strict'
import type { AccessService } from '../../../access/service.ts'
import { createSharedLimits, openSharedLimits } from '../../../gateway/limits.ts'
import type { ProcessMemoryGuard } from '../../../platform/process/memory-guard.ts'
import { createMergedMetrics, createThreadMetrics } from '../../../platform/telemetry/merged-metrics.ts'
import type { SharedFamily } from '../../../platform/telemetry/metric-memory.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import type { MetricsView } from '../../../platform/telemetry/metrics-view.ts'
import type { ThreadStart } from './start-data.ts'

export type ThreadMemoryDeps = {
  readonly registry: MetricsRegistry
  readonly access: AccessService
  readonly memory: ProcessMemoryGuard
  /** Shared memory of the memory guard. */
  readonly memoryCells: SharedArrayBuffer
}

/** The memory that the control plane and its threads share. */
export type ThreadMemory = {
  /** The metrics of the process, over all threads. */
  readonly metrics: MetricsView
  of(name: string): OwnMemory
}

/** The part of one thread, which its instances use one after another. */
export type OwnMemory = {
  startData(): Pick<ThreadStart, 'index' | 'access' | 'limits' | 'memory' | 'metrics'>
  addMetric(family: SharedFamily): void
  /** The instance has ended: releases what it held. */
  reclaim(): Promise<void>
}

/** Allocates it. `names` are those of the threads in the order of their index; the control plane is the first. */
export function createThreadMemory(
  names: readonly string[],
  { registry, access, memory, memoryCells }: ThreadMemoryDeps,
): ThreadMemory {
  const limitMemory = createSharedLimits({ threads: names.length })
  const limits = openSharedLimits(limitMemory, 0)
  const metrics = new Map(names.slice(1).map((name) => [name, createThreadMetrics()]))
  return {
    metrics: createMergedMetrics(registry, () => metrics.values()),
    of(name) {
      const index = names.indexOf(name)
      const own = metrics.get(name)
      assert(own !== undefined, `${name} is in the plan`)
      return {
        startData: () => ({
          ...{ index, access: access.startDataOf(index), limits: limitMemory },
          ...{ memory: memoryCells, metrics: own.families },
        }),
        addMetric: own.add,
        reclaim() {
          const released = access.threadEnded(index)
          limits.reclaim(index)
          memory.reclaim(index)
          own.ended()
          return released
        },
      }
    },
  }
}
