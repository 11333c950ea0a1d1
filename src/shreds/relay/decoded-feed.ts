import type { Clock } from '../../core/clock.ts'
import { CELL_BYTES, type UdpPort } from '../../platform/udp/port.ts'
import { CODING_SHRED_BYTES, DATA_SHRED_BYTES } from '../../solana/shred/shred.ts'
import type { InputWriter } from '../decoded/input-ring.ts'
import type { RelayedBatch } from './select/relayed-batch.ts'
import type { PacketMarks } from './select/select.ts'

/**
 * Passes relayed packets on to the engine of ShredStream Decoded, after they were sent, so that destinations do not wait for it. The engine follows one
 * chain, so it gets none of the packets far ahead of the one that most packets belong to.
 */
export type DecodedFeed = {
  /** The engine sees the packets. One that sleeps is woken by `wake`, or when WAKE_SHREDS wait for it. */
  offer(batch: RelayedBatch): void
  /** Whether the engine was not woken since the last packets. */
  isWakeDue(): boolean
  /** To be called when no packet waits: waking a thread in the middle of a burst would delay the rest of the burst. */
  wake(): void
}

/** At the rate of a mainnet these come in a few milliseconds. */
const WAKE_SHREDS = 48

export type DecodedFeedDeps = {
  readonly port: Pick<UdpPort, 'arena' | 'readTime'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly input: InputWriter
}

/** The kernel stamps packets with the wall clock. One that is set between arrival and now makes no arrival older than this. */
const AGE_MICROS_MAX = 1e6

export function createDecodedFeed(marks: PacketMarks, { port, clock, input }: DecodedFeedDeps): DecodedFeed {
  const { unchecked, offMainChain, generation, latestGeneration } = marks
  const { bytes, arrivals, timeMicros } = port.arena
  let waiting = 0

  function wake(): void {
    waiting = 0
    input.wake()
  }

  return {
    offer({ order, data, coding }) {
      if (data + coding === 0) return
      port.readTime()
      const nowMicros = timeMicros[0] as number
      const nowNanos = clock.monotonicMs() * 1e6
      const latest = latestGeneration()
      for (let i = 0; i < data + coding; i++) {
        const cell = order[i] as number
        // Packets of the chain before come between those of the new one, since coding shreds follow the data: the engine would begin anew with each.
        if (offMainChain[cell] === 1 || generation[cell] !== latest) continue
        const length = i < data ? DATA_SHRED_BYTES : CODING_SHRED_BYTES
        const ageMicros = Math.min(Math.max(0, nowMicros - (arrivals[cell] as number)), AGE_MICROS_MAX)
        const arrivalNanos = nowNanos - ageMicros * 1000
        const isVerified = unchecked[cell] === 0
        input.offer(bytes, cell * CELL_BYTES, length, arrivalNanos, isVerified, generation[cell] as number)
      }
      input.publish()
      waiting += data + coding
      if (waiting >= WAKE_SHREDS) wake()
    },
    isWakeDue: () => waiting > 0,
    wake,
  }
}
