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
/** Blocks built before the measurement and written repeatedly with new numbers, so that the writer takes little CPU time from the reader. */
const PREPARED_BLOCKS = 16
/** Events become visible in groups of a millisecond, as a node writes them continuously. */
const GROUP_MS = 1
/** BLOCK_END, BLOCK_FINALIZED and BLOCK_VERIFIED. */
const END_EVENTS = 3
/** The first blocks warm up the code and are written faster than the others, to shorten the bench. */
const WARM_UP_PACE = 5

/** A separate process, like a node. Prints one line with the time at which each block's end was written to the ring, in `monotonicMs`. */
if (import.meta.main) console.log(JSON.stringify(await writeRing(JSON.parse(process.argv[2] ?? '') as WriterTask)))

/** Milliseconds of a clock that all processes of the machine share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Writes the events of a block evenly over its period, as a node does, not all at its end. */
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
        // Taken directly before the end is written: the reader may run before this process continues.
        writtenAtMs[block] = monotonicMs()
        ring.recordAll(part.slice(-END_EVENTS))
      }
      // In the middle of this block: at its end the reader needs the CPU.
      if (group === groups >> 1) renumber(eventsOf(block + 1), block + 1, firstSeqno + events.length)
      dueMs += groupMs
      const waitMs = dueMs - performance.now()
      if (waitMs > 0.5) await pause(waitMs)
    }
    firstSeqno += events.length
  }
  // The file is removed with this process, and the last block must be read before.
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
