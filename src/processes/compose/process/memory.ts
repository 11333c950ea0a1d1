import type { HeldAmounts } from '../../../core/held-amounts.ts'
import { createHeldBytes, type HeldBytes } from '../../../platform/http/held-bytes.ts'
import type { MemoryCells } from '../../../platform/process/memory-cells.ts'
import {
  createMemoryGuard,
  createThreadMemoryGuard,
  type MemoryGuard,
  type ProcessMemoryGuard,
} from '../../../platform/process/memory-guard.ts'
import { loadCollect, loadMemoryRelease } from '../../../platform/process/memory-release.ts'
import { heldBytesMetric } from '../../../platform/telemetry/memory-guard-metrics.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import type { Config } from '../config/config.ts'
import type { Deps } from './deps.ts'

type MemoryDeps = Pick<Deps, 'clock' | 'log'> & { readonly registry: MetricsRegistry }

/** Enforces `memory.residentBytesMax`, over all threads where `cells` are shared with them. */
export async function openMemoryGuard(
  { memory }: Pick<Config, 'memory'>,
  deps: MemoryDeps,
  cells?: MemoryCells,
): Promise<ProcessMemoryGuard> {
  return createMemoryGuard(memory, { ...deps, cells, release: await loadMemoryRelease() })
}

/** The same in a thread other than main, which decides. */
export function openThreadMemoryGuard(
  { clock, registry }: Pick<MemoryDeps, 'clock' | 'registry'>,
  cells: MemoryCells,
): MemoryGuard {
  return createThreadMemoryGuard({ clock, registry, cells, release: { collect: loadCollect() } })
}

/** Default shares: most of the memory is for connections, streams and caches. */
const HELD_SHARE = 1 / 8
const SUBSCRIPTION_SHARE = 1 / 4

/**
 * The buffered bytes of requests and responses and their limits, from `memory` of the configuration; over all threads where `held` is shared. Each thread
 * reports its own bytes.
 */
export function openHeldBytes(
  { memory }: Pick<Config, 'memory'>,
  { clock, registry }: MemoryDeps,
  held?: HeldAmounts,
): HeldBytes {
  const bytesMax = memory.heldBytesMax ?? Math.floor(memory.residentBytesMax * HELD_SHARE)
  const ownerBytesMax = memory.heldBytesPerSubscriptionMax ?? Math.floor(bytesMax * SUBSCRIPTION_SHARE)
  const heldBytes = createHeldBytes({ bytesMax, ownerBytesMax, waitMs: memory.heldWaitMs }, clock, held)
  heldBytesMetric(registry, () => heldBytes.own)
  return heldBytes
}
