import { setTimeout as pause } from 'node:timers/promises'
import { ExecRecorder } from '../src/evm/event/recorder.ts'
import { EVENT } from '../src/evm/event/type.ts'
import { encodeRingHeader, ringFileBytes } from '../src/evm/ring/layout.ts'
import { type RingEvent, RingWriter } from '../src/evm/ring/writer.ts'
import { createRingFile } from '../src/platform/ring-file/writer.ts'
import { createBlockSource } from './ring-blocks.ts'

export type WriterTask = {
  path: string
  blocks: number
  warmUpBlocks: number
  txnsPerBlock: number
  periodMs: number
}

const GEOMETRY = { capacity: 2 ** 21, payloadBytes: 2 ** 29, contextBytes: 0 }
/** Blocks made before the clock runs, and written again and again under new numbers: whoever writes must not take time from who reads. */
const PREPARED_BLOCKS = 16
/** Events become visible in groups of a millisecond, as lanes of a node write them all the time. */
const GROUP_MS = 1
/** BLOCK_END, BLOCK_FINALIZED and BLOCK_VERIFIED. */
const END_EVENTS = 3
/** The first blocks meet code that was never run. They come faster than the others, so that the bench does not take long. */
const WARM_UP_PACE = 5

/** A process of its own, as a node is one. Its one line tells for each block when its end was put into the ring, as `monotonicMs` counts. */
if (import.meta.main) console.log(JSON.stringify(await writeRing(JSON.parse(process.argv[2] ?? '') as WriterTask)))

/** Milliseconds that all processes of the machine count from the same moment. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Writes blocks evenly over their time, as lanes of a node do, not in one go at the end. */
async function writeRing({ path, blocks, warmUpBlocks, txnsPerBlock, periodMs }: WriterTask): Promise<number[]> {
  const writtenAtMs: number[] = []
  const prepared = prepareBlocks(txnsPerBlock)
  using file = createRingFile(path, { bytes: ringFileBytes(GEOMETRY), header: encodeRingHeader(GEOMETRY) })
  const ring = new RingWriter({ geometry: GEOMETRY }, file)
  await pause(500)
  let dueMs = performance.now()
  const eventsOf = (block: number) => prepared[block % PREPARED_BLOCKS] as RingEvent[]
  let firstSeqno = ring.lastSeqno + 1
  renumber(eventsOf(1), 1, firstSeqno)
  for (let block = 1; block <= blocks; block++) {
    const events = eventsOf(block)
    const groupMs = GROUP_MS / (block > warmUpBlocks ? 1 : WARM_UP_PACE)
    const groups = Math.round(periodMs / GROUP_MS)
    for (let group = 0; group < groups; group++) {
      const part = events.slice(
        Math.floor((events.length * group) / groups),
        Math.floor((events.length * (group + 1)) / groups),
      )
      const timeNs = BigInt(Date.now()) * 1_000_000n
      for (const event of part) event.timeNs = timeNs
      const isLast = group === groups - 1
      ring.recordAll(isLast ? part.slice(0, -END_EVENTS) : part)
      if (isLast) {
        // Before the end is there, and nothing but the end: what reads it may run before this process goes on.
        writtenAtMs[block] = monotonicMs()
        ring.recordAll(part.slice(-END_EVENTS))
      }
      // In the middle of this block: at its end the processor is wanted by those who read it.
      if (group === groups >> 1) renumber(eventsOf(block + 1), block + 1, firstSeqno + events.length)
      dueMs += groupMs
      const waitMs = dueMs - performance.now()
      if (waitMs > 0.5) await pause(waitMs)
    }
    firstSeqno += events.length
  }
  // The file goes with this process: the last block is still to be read.
  await pause(500)
  return writtenAtMs
}

function prepareBlocks(txnsPerBlock: number): RingEvent[][] {
  const blocks: RingEvent[][] = []
  const recorder = new ExecRecorder({ lastSeqno: 0, recordAll: (events) => void blocks.push([...events]) })
  const source = createBlockSource(recorder, { txnsPerBlock, nowNs: () => 0n })
  for (let block = 0; block < PREPARED_BLOCKS; block++) {
    for (const _ of source.write(1));
    recorder.flush()
  }
  return blocks
}

function renumber(events: readonly RingEvent[], block: number, firstSeqno: number): void {
  for (const event of events) {
    if (event.blockSeqno !== 0) event.blockSeqno = firstSeqno
    const view = new DataView(event.payload.buffer)
    if (event.type === EVENT.BLOCK_START || event.type === EVENT.BLOCK_FINALIZED) {
      view.setBigUint64(24, BigInt(block))
      view.setBigUint64(32, BigInt(block), true)
    }
    if (event.type === EVENT.BLOCK_VERIFIED) view.setBigUint64(0, BigInt(block), true)
  }
}
