import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { createMemoryCells, MemoryCells } from '../../../platform/process/memory-cells.ts'
import { MAIN_THREAD } from '../../../platform/telemetry/thread-supervision-metrics.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import { createProbePublisher, type ProbePublisher } from '../../../upstreams/probes/shared-probes.ts'
import { type OpenedAccess, openAccess } from '../access/open-access.ts'
import type { Settings } from '../config/settings.ts'
import { openMemoryGuard } from '../process/memory.ts'
import type { ProcessContext } from '../process/open-process.ts'
import { createHealthReports } from './health-reports.ts'
import { createThreadHost, type ThreadHost, type ThreadPlan, threadNames } from './thread-host.ts'

/** What the main thread opens before its threads: access and the memory guard, in memory that the threads of the plan share. */
export type ControlPlane = AsyncDisposable & {
  readonly openedAccess: OpenedAccess
  /** The control plane probes the nodes for all threads. */
  readonly probes: ProbePublisher
  /** For the nodes of the main thread. A node is well again when no thread reports it any more. */
  readonly health: Pick<Lifecycle, 'degraded' | 'recovered'>
  /** The threads can start as soon as the nodes are known. */
  threadsOn(nodes: NodesOptions): ThreadHost
}

export async function openControlPlane(
  settings: Settings,
  context: ProcessContext<never>,
  plan: ThreadPlan,
): Promise<ControlPlane> {
  await using opening = new AsyncDisposableStack()
  const threads = threadNames(plan).length
  const memoryCells = createMemoryCells({ threads })
  const memory = opening.use(await openMemoryGuard(settings.config, context, new MemoryCells(memoryCells, 0)))
  const openedAccess = opening.use(await openAccess(settings, context, threads))
  const { access } = openedAccess
  const probes = createProbePublisher()
  const health = createHealthReports(context.lifecycle)
  const deps = { ...context, access, memory, memoryCells, probes, health }
  const opened = opening.move()
  return {
    openedAccess,
    probes,
    health: health.of(MAIN_THREAD),
    threadsOn: (nodes) => createThreadHost(settings, plan, { ...deps, nodes }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
