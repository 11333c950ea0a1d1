import { createResponseBudget, type ResponseBudget } from '../../../platform/http/response-budget.ts'
import { createMemoryGuard, type MemoryGuard } from '../../../platform/process/memory-guard.ts'
import { loadMemoryRelease } from '../../../platform/process/memory-release.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import type { Config } from '../config/config.ts'
import type { Deps } from './deps.ts'

type MemoryDeps = Pick<Deps, 'clock' | 'log'> & { readonly registry: MetricsRegistry }

/** Keeps this process below the ceiling that `memory` in the configuration gives. */
export async function openMemoryGuard({ memory }: Pick<Config, 'memory'>, deps: MemoryDeps): Promise<MemoryGuard> {
  return createMemoryGuard(memory, { ...deps, release: await loadMemoryRelease() })
}

/** Shares of the ceiling where the configuration names no size: most of it is for connections, streams and what the process keeps. */
const HELD_SHARE = 1 / 8
const SUBSCRIPTION_SHARE = 1 / 4

/** What this process holds of requests and responses, as `memory` in the configuration limits it. */
export function openResponseBudget(
  { memory }: Pick<Config, 'memory'>,
  { clock, registry }: MemoryDeps,
): ResponseBudget {
  const bytesMax = memory.heldBytesMax ?? Math.floor(memory.residentBytesMax * HELD_SHARE)
  const ownerBytesMax = memory.heldBytesPerSubscriptionMax ?? Math.floor(bytesMax * SUBSCRIPTION_SHARE)
  const budget = createResponseBudget({ bytesMax, ownerBytesMax, waitMs: memory.heldWaitMs }, clock)
  registry.gauge({
    name: 'sluice_process_held_bytes',
    help: 'Bytes of requests and responses that have arrived and cannot leave yet.',
    read: () => budget.heldBytes,
  })
  return budget
}
