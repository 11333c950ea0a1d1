import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { createSeededRandom } from '../src/core/random.ts'
import { ExecRecorder } from '../src/evm/exec-recorder.ts'
import { encodeRingHeader, ringFileBytes } from '../src/evm/ring-layout.ts'
import { RingWriter } from '../src/evm/ring-writer.ts'
import { startRingSource } from '../src/execution/ring-source.ts'
import { systemClock } from '../src/host/clock.ts'
import { createLogger } from '../src/host/logger.ts'
import { loadFileMapper } from '../src/host/mapped-file.ts'
import { createRingFile } from '../src/host/ring-file-writer.ts'
import { createBlockSource, EVENTS_PER_TXN } from './ring-blocks.ts'

/**
 * How old the figures of a block are when they can be published: from the moment its last event is in the ring to the moment its
 * ContentionData is text in the main thread. One thread writes a live ring at the given rate, the service's own reads it.
 */
export type PublishOptions = { folder: string; seconds: number; eventsPerSecond: number }

type WriterTask = { path: string; blocks: number; periodMs: number; written: SharedArrayBuffer }

const TXNS_PER_BLOCK = 400
const GEOMETRY = { capacity: 2 ** 21, payloadBytes: 2 ** 29, contextBytes: 0 }
/** Events become visible in groups of a millisecond, as lanes of a node write them all the time. */
const TXNS_PER_FLUSH = 8
/** The first blocks meet code that was never run. They come faster than the others, so that the bench does not take long. */
const WARM_UP_BLOCKS = 240
const WARM_UP_PACE = 2

if (!isMainThread) await writeRing(workerData as WriterTask)

export async function measurePublish(options: PublishOptions): Promise<Record<string, number>> {
  const periodMs = ((TXNS_PER_BLOCK * EVENTS_PER_TXN) / options.eventsPerSecond) * 1000
  const blocks = WARM_UP_BLOCKS + Math.ceil((options.seconds * 1000) / periodMs)
  const written = new SharedArrayBuffer((blocks + 1) * 8)
  const writtenAt = new Float64Array(written)
  const path = `${options.folder}/live`
  const ages: number[] = []
  const lost = { gaps: 0 }
  const task: WriterTask = { path, blocks, periodMs, written }
  const writer = new Worker(new URL(import.meta.url), { workerData: task })
  await using _ = startRingSource(
    { kind: 'ring', path, start: 'oldest', topAccessesMs: 5000, topAccessesResetMs: 300_000, blockBytesMax: 2 ** 25 },
    {
      log: createLogger({ level: 'warn' }),
      clock: systemClock,
      random: createSeededRandom(1),
      onMessages(messages) {
        for (const message of messages) {
          if (message.kind === 'gap') lost.gaps += 1
          if (message.kind !== 'contention') continue
          JSON.stringify(message.data)
          const block = message.data.block_number
          if (block > WARM_UP_BLOCKS) ages.push(now() - (writtenAt[block] as number))
        }
      },
    },
  )
  const wanted = blocks - WARM_UP_BLOCKS
  const deadlineMs = performance.now() + options.seconds * 3000 + 20_000
  while (ages.length < wanted && performance.now() < deadlineMs) await pause(20)
  await writer.terminate()
  ages.sort((a, b) => a - b)
  const at = (share: number): number => Number((ages[Math.floor(ages.length * share)] ?? Number.NaN).toFixed(3))
  return {
    eventsPerSecond: options.eventsPerSecond,
    blocks: ages.length,
    missing: wanted - ages.length,
    ...lost,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    maxMs: at(0.9999),
  }
}

/** Milliseconds that mean the same in all threads. */
function now(): number {
  return performance.timeOrigin + performance.now()
}

/** Writes blocks evenly over their time, as lanes of a node do, not in one go at the end. */
async function writeRing({ path, blocks, periodMs, written }: WriterTask): Promise<void> {
  const writtenAt = new Float64Array(written)
  const mapper = await loadFileMapper()
  using file = createRingFile(path, {
    bytes: ringFileBytes(GEOMETRY),
    header: encodeRingHeader(GEOMETRY),
    mapper,
    isMapped: mapper.ok,
  })
  const ring = new RingWriter({ geometry: GEOMETRY }, file)
  const recorder = new ExecRecorder(ring)
  const source = createBlockSource(recorder, {
    txnsPerBlock: TXNS_PER_BLOCK,
    nowNs: () => BigInt(Math.floor(now() * 1000)) * 1000n,
  })
  await pause(500)
  let dueMs = performance.now()
  let txns = 0
  for (let block = 1; block <= blocks; block++) {
    for (const _ of source.write(block)) {
      txns += 1
      if (txns % TXNS_PER_FLUSH !== 0) continue
      recorder.flush()
      dueMs += (periodMs * TXNS_PER_FLUSH) / TXNS_PER_BLOCK / (block > WARM_UP_BLOCKS ? 1 : WARM_UP_PACE)
      const waitMs = dueMs - performance.now()
      if (waitMs > 1) await pause(waitMs)
    }
    // Set before as well: the figures may be there before this thread goes on.
    writtenAt[block] = now()
    recorder.flush()
    writtenAt[block] = now()
  }
  await pause(60_000)
}
