import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createSeededRandom } from '../src/core/random.ts'
import { startRingSource } from '../src/execution/ring-source.ts'
import { systemClock } from '../src/host/clock.ts'
import { createLogger } from '../src/host/logger.ts'
import { processTimeMs } from '../src/host/worker.ts'
import { EVENTS_PER_TXN } from './ring-blocks.ts'
import type { WriterTask } from './ring-publish-writer.ts'

/**
 * How old the figures of a block are when they can be published: from the moment its last event is in the ring to the moment its
 * ContentionData is text in the main thread. One thread writes a live ring at the given rate, the service's own reads it.
 */
export type PublishOptions = { folder: string; seconds: number; eventsPerSecond: number }

const TXNS_PER_BLOCK = 400
/** The first blocks meet code that was never run. */
const WARM_UP_BLOCKS = 240

export async function measurePublish(options: PublishOptions): Promise<Record<string, number>> {
  const periodMs = ((TXNS_PER_BLOCK * EVENTS_PER_TXN) / options.eventsPerSecond) * 1000
  const blocks = WARM_UP_BLOCKS + Math.ceil((options.seconds * 1000) / periodMs)
  const written = new SharedArrayBuffer((blocks + 1) * 8)
  const writtenAt = new Float64Array(written)
  const path = `${options.folder}/live`
  const ages: number[] = []
  const lost = { gaps: 0 }
  const task: WriterTask = {
    path,
    blocks,
    warmUpBlocks: WARM_UP_BLOCKS,
    txnsPerBlock: TXNS_PER_BLOCK,
    periodMs,
    written,
  }
  const writer = new Worker(new URL('./ring-publish-writer.ts', import.meta.url), { workerData: task })
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
          if (block > WARM_UP_BLOCKS) ages.push(processTimeMs() - (writtenAt[block] as number))
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
