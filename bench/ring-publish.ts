import { fileURLToPath } from 'node:url'
import { createSeededRandom } from '../src/core/random.ts'
import { startRingSource } from '../src/execution/source/ring-source.ts'
import { systemClock } from '../src/platform/process/clock.ts'
import { createLogger } from '../src/platform/telemetry/logger.ts'
import { EVENTS_PER_TXN } from './ring-blocks.ts'
import { monotonicMs, type WriterTask } from './ring-publish-writer.ts'
import { startPinned } from './support/pinned-process.ts'

/**
 * The age of a block's figures when they can be published: from its last event in the ring to its ContentionData as text in the main
 * thread. A separate process writes a live ring at the given rate; the service's reader thread reads it beside the main thread.
 */
type PublishOptions = { folder: string; seconds: number; eventsPerSecond: number }

const WRITER = fileURLToPath(new URL('./ring-publish-writer.ts', import.meta.url))
/** A node has its own cores. Here the writer shares one at low priority and reports itself when a block was written. */
const WRITER_CORE = 1
const WRITER_NICE = '10'
const TXNS_PER_BLOCK = 400
/** Code that runs once per block is optimized only after hundreds of blocks. */
const WARM_UP_BLOCKS = 1000

const [folder = '', seconds, eventsPerSecond] = process.argv.slice(2)
const published = await measurePublish({
  folder,
  seconds: Number(seconds ?? 10),
  eventsPerSecond: Number(eventsPerSecond ?? 200_000),
})
console.log(JSON.stringify(published))

async function measurePublish(options: PublishOptions): Promise<Record<string, number>> {
  const periodMs = ((TXNS_PER_BLOCK * EVENTS_PER_TXN) / options.eventsPerSecond) * 1000
  const blocks = WARM_UP_BLOCKS + Math.ceil((options.seconds * 1000) / periodMs)
  const path = `${options.folder}/live`
  const publishedAtMs: number[] = []
  const lost = { gaps: 0 }
  const task: WriterTask = { path, blocks, warmUpBlocks: WARM_UP_BLOCKS, txnsPerBlock: TXNS_PER_BLOCK, periodMs }
  await using writer = startPinned(WRITER_CORE, 'nice', [
    '-n',
    WRITER_NICE,
    process.execPath,
    WRITER,
    JSON.stringify(task),
  ])
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
          publishedAtMs[message.data.block_number] = monotonicMs()
        }
      },
    },
  )
  const writtenAtMs = JSON.parse(await writer.firstLine()) as number[]
  const wanted = blocks - WARM_UP_BLOCKS
  const ages = writtenAtMs.flatMap((writtenMs, block) => {
    const publishedMs = publishedAtMs[block]
    return block <= WARM_UP_BLOCKS || publishedMs === undefined ? [] : [publishedMs - writtenMs]
  })
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
