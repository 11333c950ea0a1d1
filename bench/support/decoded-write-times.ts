import { subscribe } from 'node:diagnostics_channel'
import type { ServerHttp2Stream } from 'node:http2'
import type { DecodedDataSet, DecodedSource } from '../../src/gateway/geyser/decoded/source.ts'
import { WIRE_BYTES, WireReader } from '../../src/solana/geyser/wire-reader.ts'

/**
 * Measures, for each message of a decoded transaction, the time from the arrival of the shred that completed its data set until the kernel has taken
 * the write of its socket that carries it. node:http2 writes each connection after the turn in which its streams were written to, and calls back when the
 * write of a connection has returned; the callback is called for each write, before that of the next connection. It is a cost of a few microseconds a
 * write that the server does not have otherwise.
 */
export type WriteTimes = {
  /** The same source, of whose data sets the arrivals are kept. */
  watch(source: DecodedSource): DecodedSource
  /** Milliseconds: of each message; and of each data set until its last message. */
  take(): { readonly messages: readonly WriteTime[]; readonly dataSets: readonly WriteTime[] }
}

export type WriteTime = { readonly arrivedMs: number; readonly ms: number }

const PREFIX_BYTES = 5
/** Fields of SubscribeUpdateDeshred, its transaction, and the info of that. */
const TRANSACTION = 2
const SLOT = 2
const INFO = 1
const START_INDEX = 6

export function createWriteTimes(monotonicMs: () => number): WriteTimes {
  const arrivals = new Map<string, number>()
  const lastWrites = new Map<string, number>()
  const messages: WriteTime[] = []
  /** Read when the turn that wrote them is over, so that this delays no write. */
  let written: { readonly frames: Uint8Array; readonly nowMs: number }[] = []

  subscribe('http2.server.stream.created', (event) => {
    const { stream } = event as { stream: ServerHttp2Stream }
    const { write } = stream
    const measured = (frames: Uint8Array) => Reflect.apply(write, stream, [frames, () => onWritten(frames)]) as boolean
    stream.write = measured as typeof stream.write
  })

  function onWritten(frames: Uint8Array): void {
    if (written.push({ frames, nowMs: monotonicMs() }) === 1) setImmediate(readWritten)
  }

  function readWritten(): void {
    for (const { frames, nowMs } of written) {
      for (const { key, count } of dataSetsOf(frames)) {
        const arrivedMs = arrivals.get(key)
        if (arrivedMs === undefined) continue
        lastWrites.set(key, nowMs)
        for (let i = 0; i < count; i++) messages.push({ arrivedMs, ms: nowMs - arrivedMs })
      }
    }
    written = []
  }

  function onDataSet({ slot, startIndex, arrivalNanos }: DecodedDataSet): void {
    arrivals.set(keyOf(slot, startIndex), arrivalNanos / 1e6)
  }

  return {
    watch: (source) => ({
      read: (reader) =>
        source.read({
          onDataSet(set) {
            onDataSet(set)
            reader.onDataSet(set)
          },
          onSlot: (slot) => reader.onSlot(slot),
          onLost: (dataSets) => reader.onLost(dataSets),
          onBatchEnd: () => reader.onBatchEnd(),
        }),
    }),
    take() {
      const dataSets: WriteTime[] = []
      for (const [key, nowMs] of lastWrites) {
        const arrivedMs = arrivals.get(key) as number
        dataSets.push({ arrivedMs, ms: nowMs - arrivedMs })
      }
      return { messages, dataSets }
    },
  }
}

function keyOf(slot: number, startIndex: number): string {
  return `${slot}/${startIndex}`
}

/** The data sets whose transactions are in these frames, and how many messages of each. Those of one data set stand together. */
function dataSetsOf(frames: Uint8Array): { readonly key: string; readonly count: number }[] {
  const view = new DataView(frames.buffer, frames.byteOffset, frames.length)
  const bodies: number[] = []
  for (let at = 0; at < frames.length; at += PREFIX_BYTES + view.getUint32(at + 1)) bodies.push(at)
  const keyAt = (at: number) =>
    dataSetKey(frames.subarray(at + PREFIX_BYTES, at + PREFIX_BYTES + view.getUint32(at + 1)))
  const first = keyAt(bodies[0] as number)
  // Most writes have the messages of one data set: then two of them are read.
  if (first !== undefined && first === keyAt(bodies.at(-1) as number)) return [{ key: first, count: bodies.length }]
  return bodies.flatMap((at) => {
    const key = keyAt(at)
    return key === undefined ? [] : [{ key, count: 1 }]
  })
}

/** Undefined for a message that is no transaction. */
function dataSetKey(message: Uint8Array): string | undefined {
  const update = new WireReader(message)
  while (update.next()) {
    if (update.field !== TRANSACTION || update.wireType !== WIRE_BYTES) continue
    let slot = 0
    let startIndex = 0
    const transaction = update.inside()
    while (transaction.next()) {
      if (transaction.field === SLOT) slot = transaction.value
      if (transaction.field !== INFO) continue
      const info = transaction.inside()
      while (info.next()) if (info.field === START_INDEX) startIndex = info.value
    }
    return keyOf(slot, startIndex)
  }
  return undefined
}
