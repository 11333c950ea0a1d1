import { join } from 'node:path'
import type { Access } from '../../../access/service.ts'
import { executionMetrics } from '../../../execution/metrics.ts'
import { type Execution, startExecution } from '../../../execution/service.ts'
import { startRingSource } from '../../../execution/source/ring-source.ts'
import { openNumberFile } from '../../../platform/files/number.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import { listenerOf } from '../config/listener.ts'
import type { Settings } from '../config/settings.ts'
import type { ProcessContext } from '../process/open-process.ts'
import { VERSION } from '../process/version.ts'
import { openExecutionRing } from './execution-ring.ts'
import { openPage } from './page.ts'

export type ExecutionPartDeps = ProcessContext<'execution'> & {
  readonly access: Access
  readonly memory: MemoryGuard
}

/** What outlives a restart of the service: the ring, if this process writes it, the page and the metrics. */
export type ExecutionPart = AsyncDisposable & {
  start(port: number | undefined): Promise<Execution>
}

/** A larger block is folded, but not stored for JSON-RPC. */
const BLOCK_BYTES_MAX = 32 * 1024 * 1024

/** The execution service as its section of the configuration sets it up. */
export async function openExecution(settings: Settings, deps: ExecutionPartDeps): Promise<ExecutionPart> {
  const { config, loaded } = settings
  const { state, access, log, clock, random, registry, listenerMetrics } = deps
  const {
    listen,
    tls,
    plaintext,
    ring: _ring,
    node: _node,
    ringStart,
    ringRead,
    enabled: _enabled,
    ...options
  } = config.execution
  const metrics = executionMetrics(registry)
  const seqStore = openNumberFile(join(await state.folder('execution'), 'seq'))
  await using opening = new AsyncDisposableStack()
  const ring = opening.use(await openExecutionRing(settings, deps))
  const { page } = await openPage({ names: ring.names, log })
  const opened = opening.move()
  return {
    start(port) {
      const listener = listenerOf({ listen, tls, plaintext }, loaded.folder, deps.memory.mayOpenStream)
      return startExecution(
        { ...options, listen: port === undefined ? listener : { ...listener, port } },
        {
          log,
          clock,
          random,
          version: VERSION,
          registry,
          metrics,
          access,
          seqStore,
          page,
          ...listenerMetrics('execution'),
          startSource: (onMessages) =>
            startRingSource(
              {
                kind: ring.kind,
                path: ring.path,
                start: ringStart,
                mode: ringRead,
                topAccessesMs: options.topAccesses.everyMs,
                topAccessesResetMs: options.topAccesses.resetMs,
                blockBytesMax: BLOCK_BYTES_MAX,
              },
              { log, clock, random, onMessages },
            ),
        },
      )
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
