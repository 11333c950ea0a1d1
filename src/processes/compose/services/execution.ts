import { join } from 'node:path'
import type { Access } from '../../../access/call-access.ts'
import { BlockArchive } from '../../../execution/archive/archive.ts'
import { History } from '../../../execution/history/history.ts'
import type { HistoryFilesOptions } from '../../../execution/history/history-files.ts'
import { executionMetrics } from '../../../execution/metrics.ts'
import { SIMULATED_HELD_BLOCKS } from '../../../execution/rpc/block-store.ts'
import { type Execution, startExecution } from '../../../execution/service.ts'
import { openLastEvent } from '../../../execution/source/last-event.ts'
import { SILENT_MS } from '../../../execution/source/liveness.ts'
import { startRingSource } from '../../../execution/source/ring-source.ts'
import { SIMULATED_RESUME_BYTES } from '../../../execution/stream/resume-buffer.ts'
import { openNumberFile } from '../../../platform/files/number.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import { listenerOf } from '../config/listener.ts'
import { openPage } from '../pages/live.ts'
import type { ServiceContext, ServiceSettings } from '../process/service-context.ts'
import { VERSION } from '../process/version.ts'
import { openExecutionRing } from './execution-ring.ts'

export type ExecutionPartDeps = ServiceContext<'execution'> & {
  readonly access: Access
  readonly memory: Pick<MemoryGuard, 'mayOpenStream'>
}

/** What outlives a restart of the service: the ring, if this process writes it, the time of the last event, the page and the metrics. */
export type ExecutionPart = AsyncDisposable & {
  start(port: number | undefined): Promise<Execution>
}

/** A larger block is folded, but not stored for JSON-RPC. */
const BLOCK_BYTES_MAX = 32 * 1024 * 1024

/** The execution service as its section of the configuration sets it up. */
export async function openExecution(settings: ServiceSettings, deps: ExecutionPartDeps): Promise<ExecutionPart> {
  const { config, loaded } = settings
  const { state, access, log, clock, random, registry, lifecycle, listenerMetrics } = deps
  const {
    publicUrl: _publicUrl,
    ring: _ring,
    node: _node,
    simulated: _simulated,
    ringStart,
    ringRead,
    enabled: _enabled,
    ...options
  } = config.execution
  const metrics = executionMetrics(registry)
  const folder = await state.folder('execution')
  const seqStore = openNumberFile(join(folder, 'seq'))
  await using opening = new AsyncDisposableStack()
  const lastEvent = opening.use(
    openLastEvent({
      clock,
      store: openNumberFile(join(folder, 'last-event')),
      unknownAgeMs: SILENT_MS,
      onFault: (err) => log.warn({ err, part: 'execution' }, 'the time of the last event cannot be kept on disk'),
    }),
  )
  const ring = opening.use(await openExecutionRing(settings, deps))
  const archive = await openArchive(await state.folder('execution', 'blocks'), options.blocks, deps)
  if (archive !== undefined) opening.use(archive)
  const history = opening.use(
    await History.open(
      {
        blocksMax: options.history.blocksMax,
        files: await historyFiles(state, options.history.diskBytesMax, ring.isSimulated),
      },
      { clock, log: log.child({ part: 'execution' }), eventAgeMs: () => lastEvent.ageMs },
    ),
  )
  const { page } = await openPage({ names: ring.names, log })
  const opened = opening.move()
  return {
    start(port) {
      const listener = listenerOf(config.execution, loaded.folder, deps.memory.mayOpenStream)
      return startExecution(
        {
          ...options,
          resume: resumeOf(options.resume, ring.isSimulated),
          blocks: blocksOf(options.blocks, ring.isSimulated),
          listen: port === undefined ? listener : { ...listener, port },
        },
        {
          log,
          clock,
          random,
          version: VERSION,
          registry,
          metrics,
          access,
          refusals: deps.refusals,
          seqStore,
          lastEvent,
          lifecycle,
          archive,
          history,
          names: ring.names,
          page,
          documents: deps.documents.files,
          docsUrl: deps.documents.docsUrlOf('execution'),
          ...listenerMetrics('execution'),
          startSource: (onMessages) =>
            startRingSource(
              {
                kind: ring.kind,
                isSimulated: ring.isSimulated,
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

/** Simulated data keeps fewer frames for clients that resume, unless the operator has set how many. */
export function resumeOf<Resume extends { readonly bytesMax?: number | undefined }>(
  resume: Resume,
  isSimulated: boolean,
): Resume {
  return isSimulated && resume.bytesMax === undefined ? { ...resume, bytesMax: SIMULATED_RESUME_BYTES } : resume
}

/** The same of the blocks in memory; the others are on disk. */
export function blocksOf<Blocks extends { readonly heldMax?: number | undefined }>(
  blocks: Blocks,
  isSimulated: boolean,
): Blocks {
  return isSimulated && blocks.heldMax === undefined ? { ...blocks, heldMax: SIMULATED_HELD_BLOCKS } : blocks
}

async function historyFiles(
  state: ExecutionPartDeps['state'],
  bytesMax: number,
  isSimulated: boolean,
): Promise<HistoryFilesOptions | undefined> {
  return bytesMax === 0 ? undefined : { folder: await state.folder('execution', 'history'), bytesMax, isSimulated }
}

/** The service runs without blocks on disk where they cannot be opened. */
async function openArchive(
  folder: string,
  { diskMax: blocksMax, diskBytesMax: bytesMax }: ServiceSettings['config']['execution']['blocks'],
  { log, clock }: Pick<ExecutionPartDeps, 'log' | 'clock'>,
): Promise<BlockArchive | undefined> {
  if (blocksMax === 0) return undefined
  try {
    return await BlockArchive.open({ folder, blocksMax, bytesMax }, { log: log.child({ part: 'execution' }), clock })
  } catch (err) {
    log.warn({ err, folder }, 'the blocks on disk cannot be opened; JSON-RPC has the blocks in memory only')
    return undefined
  }
}
