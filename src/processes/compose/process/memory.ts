import { createResponseBudget, type ResponseBudget } from '../../../platform/http/response-budget.ts'
import { createMemoryGuard, type MemoryGuard } from '../../../platform/process/memory-guard.ts'
import { loadMemoryRelease } from '../../../platform/process/memory-release.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import type { Config } from '../config/config.ts'
import type { Deps } from './deps.ts'

type MemoryDeps = Pick<Deps, 'clock' | 'log'> & { readonly registry: MetricsRegistry }

/** Enforces `memory.residentBytesMax`. */
export async function openMemoryGuard({ memory }: Pick<Config, 'memory'>, deps: MemoryDeps): Promise<MemoryGuard> {
  return createMemoryGuard(memory, { ...deps, release: await loadMemoryRelease() })
}

/** Default shares: most of the memory is for connections, streams and caches. */
const HELD_SHARE = 1 / 8
const SUBSCRIPTION_SHARE = 1 / 4

/** The byte budget of buffered requests and responses, from `memory` of the configuration. */
export function openResponseBudget(
  { memory }: Pick<Config, 'memory'>,
  { clock, registry }: MemoryDeps,
): ResponseBudget {
  const bytesMax = memory.heldBytesMax ?? Math.floor(memory.residentBytesMax * HELD_SHARE)
  const ownerBytesMax = memory.heldBytesPerSubscriptionMax ?? Math.floor(bytesMax * SUBSCRIPTION_SHARE)
  const budget = createResponseBudget({ bytesMax, ownerBytesMax, waitMs: memory.heldWaitMs }, clock)
  registry.gauge('sluice_process_held_bytes', 'Buffered bytes of requests and responses.', {
    read: () => budget.heldBytes,
    // The budget is one for all threads of the process.
    merge: 'max',
  })
  return budget
}
