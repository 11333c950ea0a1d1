import { CELL_BYTES, type PacketArena } from '../../platform/udp/port.ts'
import { CODING_SHRED_BYTES, DATA_SHRED_BYTES } from '../../solana/shred/shred.ts'
import type { InputWriter } from '../decoded/input-ring.ts'
import type { Batch } from './fan-out.ts'

/** Passes relayed packets on to the engine of ShredStream Decoded, after they were sent, so that destinations do not wait for it. */
export type DecodedFeed = { offer(batch: Batch, nowMs: number): void }

export function createDecodedFeed(arena: PacketArena, unchecked: Uint8Array, input: InputWriter): DecodedFeed {
  return {
    offer({ order, data, code }, nowMs) {
      const arrivalNanos = nowMs * 1e6
      for (let i = 0; i < data + code; i++) {
        const cell = order[i] as number
        const length = i < data ? DATA_SHRED_BYTES : CODING_SHRED_BYTES
        input.offer(arena.bytes, cell * CELL_BYTES, length, arrivalNanos, unchecked[cell] === 0)
      }
      if (data + code > 0) input.flush()
    },
  }
}
