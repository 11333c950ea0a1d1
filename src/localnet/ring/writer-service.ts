import type { Clock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { ExecRecorder } from '../../evm/event/recorder.ts'
import type { Hex } from '../../evm/hex.ts'
import { encodeRingHeader, ringFileBytes } from '../../evm/ring/layout.ts'
import { RingWriter } from '../../evm/ring/writer.ts'
import { loadFileMapper } from '../../platform/files/mapped.ts'
import { createRingFile } from '../../platform/ring-file/writer.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { startTicker } from '../chain/ticker.ts'
import { RingChain, type RingChainStats } from './chain.ts'
import { geometryFor, RING_WRITER_DEFAULTS, type RingWriterOptions } from './options.ts'
import { createEvmState } from './state.ts'

export type RingWriterDeps = { readonly log: Logger; readonly clock: Clock }

export type RingWriterService = AsyncDisposable & {
  readonly path: string
  /** Display names of the simulated contracts. */
  readonly labels: ReadonlyMap<Hex, string>
  stats(): RingWriterStats
  /** Stops block production, as in a node that hangs: the ring file stays. */
  pause(): void
  resume(): void
}

export type RingWriterStats = RingChainStats & {
  readonly events: number
  /** Number of the next block. */
  readonly nextNumber: number
  /** Blocks that could not be written because the disk was full. */
  readonly failedBlocks: number
}

/** Block numbers are counted from this time, so that they keep increasing after a restart. */
const GENESIS_MS = Date.UTC(2026, 0, 1)
/** The seed of accounts and contracts where none is configured: they have the same addresses after a restart, so that the history keeps their names. */
const GENESIS_SEED = 1

/** A simulated node: creates a ring file and records a block into it at every tick. Closing it removes the file, as a node does. */
export async function startRingWriter(options: RingWriterOptions, deps: RingWriterDeps): Promise<RingWriterService> {
  const { clock } = deps
  const log = deps.log.child({ part: 'ring-writer' })
  const settings = { ...RING_WRITER_DEFAULTS, ...options }
  const { path, tps, blockMs, geometry = geometryFor(tps), isMapped = false } = settings
  const firstNumber = settings.firstNumber ?? Math.max(1, Math.floor((clock.nowMs() - GENESIS_MS) / blockMs))
  const mapper = await loadFileMapper()
  if (!mapper.ok) log.warn({ reason: mapper.reason }, 'the ring is written without a memory mapping and is not locked')

  using opening = new DisposableStack()
  const bytes = ringFileBytes(geometry)
  const file = opening.use(createRingFile(path, { bytes, header: encodeRingHeader(geometry), mapper, isMapped }))
  const writer = new RingWriter({ geometry }, file)
  const recorder = new ExecRecorder(writer)
  const random = createSeededRandom(settings.seed ?? firstNumber)
  const state = createEvmState(settings.seed === undefined ? createSeededRandom(GENESIS_SEED) : random)
  const chain = new RingChain(
    { ...settings, firstNumber, txnsPerBlock: (tps * blockMs) / 1000 },
    { recorder, random, state },
  )
  let isPaused = false
  let failedBlocks = 0
  opening.use(startTicker(() => blockMs, { clock, tick }))
  log.info({ path, tps, blockMs, firstNumber, ringBytes: bytes }, 'simulated chain started')

  const opened = opening.move()
  return {
    path,
    labels: chain.state.labels,
    stats: () => ({ ...chain.stats, events: writer.lastSeqno, nextNumber: chain.nextNumber, failedBlocks }),
    pause: () => void (isPaused = true),
    resume: () => void (isPaused = false),
    async [Symbol.asyncDispose]() {
      opened.dispose()
    },
  }

  function tick(): void {
    if (isPaused) return
    try {
      chain.proposeBlock(BigInt(Math.floor(clock.nowMs() * 1000)) * 1000n)
      recorder.flush()
    } catch (error) {
      // A full disk stops the ring, not the process. Readers report the missing events as a gap.
      recorder.discard()
      failedBlocks += 1
      if (failedBlocks === 1) log.error({ err: error, path }, 'ring write failed')
    }
  }
}
