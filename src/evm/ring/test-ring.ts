import assert from 'node:assert/strict'
import { type DecodedEvent, decodeEvent } from '../event/exec-event.ts'
import type { RingControl, RingLimits } from './layout.ts'
import type { RingStart } from './position.ts'
import { createRingReader, type ReaderOptions, type ReadResult, type RingReader } from './reader.ts'
import type { RingSource } from './source.ts'
import { createMemoryRing, type MemoryRing } from './test-memory-ring.ts'
import { type RingEvent, RingWriter } from './writer.ts'

/** For tests: rings far below the format's minimum size, so that they wrap soon. */
export const SMALL_LIMITS: RingLimits = {
  capacityMin: 4,
  capacityMax: 2 ** 18,
  payloadBytesMin: 128,
  payloadBytesMax: 2 ** 26,
}

export type SmallRing = MemoryRing & { writer: RingWriter }

export function createSmallRing(
  options: { capacity?: number; payloadBytes?: number; windowStepBytes?: number; control?: RingControl } = {},
): SmallRing {
  const { capacity = 16, payloadBytes = 4096, windowStepBytes = 256, control } = options
  const ring = createMemoryRing({ capacity, payloadBytes, contextBytes: 0 })
  const writerOptions = { geometry: ring.geometry, windowStepBytes, ...(control === undefined ? {} : { control }) }
  return { ...ring, writer: new RingWriter(writerOptions, ring.target) }
}

export function openReader(
  source: RingSource,
  start: RingStart | { seqno: number } = { seqno: 1 },
  options: Partial<ReaderOptions> = {},
): RingReader {
  const created = createRingReader(source, start, { limits: SMALL_LIMITS, ...options })
  assert(created.ok, created.ok ? '' : created.message)
  return created.reader
}

/** An event with a payload of `size` bytes that depend on `mark`. */
export function makeEvent(mark: number, size: number, more: Partial<RingEvent> = {}): RingEvent {
  const payload = Uint8Array.from({ length: size }, (_, at) => (mark * 31 + at * 7 + 1) & 0xff)
  return { type: 18, payload, timeNs: BigInt(1000 + mark), blockSeqno: 0, txnIndex: -1, accountIndex: 0, ...more }
}

export type ReadEvent = { seqno: number; type: number; payload: Uint8Array | undefined }

/** Reads until there are no more events, without time passing. */
export function takeAll(
  reader: RingReader,
  nowMs = 0,
): { taken: ReadEvent[]; gaps: [from: number, to: number][]; last: ReadResult } {
  const taken: ReadEvent[] = []
  const gaps: [number, number][] = []
  for (let polls = 0; polls < 100_000; polls++) {
    const result = reader.poll(nowMs)
    if (result.kind === 'gap') gaps.push([result.from, result.to])
    else if (result.kind === 'events') {
      const { batch } = reader
      for (let at = 0; at < batch.count; at++) {
        taken.push({ seqno: batch.seqno(at), type: batch.type(at), payload: batch.payload(at)?.slice() })
      }
    } else return { taken, gaps, last: result }
  }
  throw new Error('the reader did not reach the end')
}

export function decodeAll(reader: RingReader): DecodedEvent[] {
  const decoded: DecodedEvent[] = []
  while (reader.poll(0).kind === 'events') {
    for (let at = 0; at < reader.batch.count; at++) decoded.push(decodeEvent(reader.batch, at))
  }
  return decoded
}
