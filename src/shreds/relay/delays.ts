import type { UdpPort } from '../../platform/udp/port.ts'
import { DELAY_BOUNDS_MICROS, type DelayCounts } from './protocol.ts'
import type { RelayedBatch } from './select/relayed-batch.ts'

/** Counts how long packets took from their arrival until they were sent to all destinations. */
export type Delays = {
  /** The packets of this batch have been sent. */
  record(batch: RelayedBatch): void
  /** Counts since the last call. */
  take(): DelayCounts
}

export function createDelays({ arena, readTime }: Pick<UdpPort, 'arena' | 'readTime'>): Delays {
  const { arrivals, timeMicros } = arena
  const bounds = Float64Array.from(DELAY_BOUNDS_MICROS)
  const packets = new Uint32Array(bounds.length + 1)
  const sumMicros = new Float64Array(1)
  return {
    record({ order, data, coding }) {
      if (data + coding === 0) return
      readTime()
      const now = timeMicros[0] as number
      for (let i = 0; i < data + coding; i++) {
        // The wall clock, which the kernel uses, can be set back.
        const micros = Math.max(0, now - (arrivals[order[i] as number] as number))
        let bucket = 0
        while (bucket < bounds.length && micros > (bounds[bucket] as number)) bucket += 1
        packets[bucket] = (packets[bucket] as number) + 1
        sumMicros[0] = (sumMicros[0] as number) + micros
      }
    },
    take() {
      const taken = { packets: [...packets], sumMicros: sumMicros[0] as number }
      packets.fill(0)
      sumMicros[0] = 0
      return taken
    },
  }
}
