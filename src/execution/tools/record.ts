import type { Clock } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import { type EventBatch, PAYLOAD_LOST } from '../../evm/ring/event-batch.ts'
import {
  alignPayload,
  DESCRIPTOR,
  DESCRIPTOR_BYTES,
  encodeRingHeader,
  HEADER,
  RING_LIMITS,
  type RingGeometry,
  SECTION_BYTES,
  WINDOW_STEP_BYTES,
} from '../../evm/ring/layout.ts'
import { createRingReader } from '../../evm/ring/reader.ts'
import { loadFileMapper } from '../../platform/files/mapped.ts'
import { delay } from '../../platform/process/clock.ts'
import { openRingFile } from '../../platform/ring-file/reader.ts'
import { createRecordingFile, type RecordingFile } from '../../platform/ring-file/recording.ts'
import { refusalError } from './open-ring.ts'

export type RecordRingOptions = {
  /** The ring that is recorded. */
  readonly ring: string
  /** The new file; compressed where its name ends in `.zst`. */
  readonly file: string
  readonly durationMs: number
  /** Start with the oldest block the ring holds, or with the newest. */
  readonly start: 'oldest' | 'newest-block'
}

export type RecordDeps = { readonly clock: Clock; readonly isStopped?: () => boolean }

export type RecordSummary = {
  events: number
  events_lost: number
  payloads_lost: number
  payload_bytes: number
  /** Why it ended: the duration is over, it was stopped, the ring was replaced, or the recording reached its maximum size. */
  ended: 'time' | 'stopped' | 'replaced' | 'full'
}

/** Maximum size of a recording. */
const PAYLOAD_BYTES_MAX = 2 ** 36
const IDLE_MS = 2

/**
 * Records a live ring into a file of the same format, with events numbered from 1. Lost events are missing sequence numbers, so that a
 * reader of the recording finds the same gaps.
 */
export async function recordRing(options: RecordRingOptions, deps: RecordDeps): Promise<RecordSummary> {
  const { clock, isStopped = () => false } = deps
  const source = openRingFile(options.ring)
  if (source === undefined) {
    throw new ServiceError('not-found', `there is no ring ${options.ring}`, { fix: 'Name another with --ring PATH.' })
  }
  using _ = { [Symbol.dispose]: () => source.close() }
  const created = createRingReader(source, options.start)
  if (!created.ok) throw refusalError(options.ring, created)
  const { reader } = created
  await using file = createRecordingFile(options.file, await loadFileMapper())
  const recording = new Recording(file, reader.cursor)
  const endMs = clock.monotonicMs() + options.durationMs
  let ended: RecordSummary['ended'] = 'time'
  for (;;) {
    const result = reader.poll(clock.monotonicMs())
    if (result.kind === 'events') recording.add(reader.batch)
    if (recording.payloadBytes > PAYLOAD_BYTES_MAX) ended = 'full'
    else if (isStopped()) ended = 'stopped'
    else if (result.kind === 'rewound' || (result.kind === 'idle' && source.isReplaced())) ended = 'replaced'
    if (ended !== 'time' || clock.monotonicMs() >= endMs) break
    if (result.kind === 'idle') await delay(clock, IDLE_MS)
  }
  await recording.finish()
  const { eventsRead, eventsLost, payloadsLost } = reader.stats
  return {
    events: eventsRead - payloadsLost,
    events_lost: eventsLost,
    payloads_lost: payloadsLost,
    payload_bytes: recording.payloadBytes,
    ended,
  }
}

class Recording {
  payloadBytes = 0
  readonly #file: RecordingFile
  /** Sequence number of the event before the first. */
  readonly #base: number
  #lastSeqno = 0

  constructor(file: RecordingFile, base: number) {
    this.#file = file
    this.#base = base
  }

  add(batch: EventBatch): void {
    const descriptors = new Uint8Array(batch.count * DESCRIPTOR_BYTES)
    const view = new DataView(descriptors.buffer)
    const payloads: Uint8Array[] = []
    let payloadEnd = this.payloadBytes
    for (let at = 0; at < batch.count; at++) {
      // An event without its payload is left out and stays a gap.
      if (batch.payloadAt[at] === PAYLOAD_LOST) continue
      const payload = batch.payload(at) ?? new Uint8Array(0)
      const from = at * DESCRIPTOR_BYTES
      const blockSeqno = batch.blockSeqno(at)
      descriptors.set(batch.descriptorBytes.subarray(from, from + DESCRIPTOR_BYTES), from)
      view.setBigUint64(from + DESCRIPTOR.seqno, BigInt(batch.seqno(at) - this.#base), true)
      view.setBigUint64(from + DESCRIPTOR.payloadOffset, BigInt(payloadEnd), true)
      view.setBigUint64(from + DESCRIPTOR.blockSeqno, BigInt(Math.max(0, blockSeqno - this.#base)), true)
      const padded = new Uint8Array(alignPayload(payload.length))
      padded.set(payload)
      payloads.push(padded)
      payloadEnd += padded.length
    }
    const firstSeqno = batch.seqno(0) - this.#base
    this.#file.writeSlots((firstSeqno - 1) * DESCRIPTOR_BYTES, descriptors)
    this.#file.writePayloads(this.payloadBytes, Buffer.concat(payloads))
    this.payloadBytes = payloadEnd
    this.#lastSeqno = firstSeqno + batch.count - 1
  }

  finish(): Promise<void> {
    const geometry: RingGeometry = {
      capacity: powerOfTwo(this.#lastSeqno, RING_LIMITS.capacityMin),
      // The valid window is one step narrower than the buffer, and all payloads here are valid.
      payloadBytes: powerOfTwo(this.payloadBytes + WINDOW_STEP_BYTES, RING_LIMITS.payloadBytesMin),
      contextBytes: 0,
    }
    const header = encodeRingHeader(geometry)
    const view = new DataView(header.buffer)
    view.setBigUint64(HEADER.lastSeqno, BigInt(this.#lastSeqno), true)
    view.setBigUint64(HEADER.nextPayloadByte, BigInt(this.payloadBytes), true)
    return this.#file.finish([
      { bytes: SECTION_BYTES, content: header },
      { bytes: geometry.capacity * DESCRIPTOR_BYTES, content: 'slots' },
      { bytes: geometry.payloadBytes, content: 'payloads' },
    ])
  }
}

function powerOfTwo(least: number, min: number): number {
  return Math.max(min, 2 ** Math.ceil(Math.log2(Math.max(1, least))))
}
