import type { RingGeometry } from '../../evm/ring/layout.ts'
import type { RingChainOptions } from './chain.ts'

/** The simulated chain behind the ring, and where its ring lies. */
export type RingWriterOptions = Partial<Omit<RingChainOptions, 'txnsPerBlock'>> & {
  /** Where the ring is made; its folder exists. */
  readonly path: string
  readonly blockMs?: number
  /** Transactions a second: fractions and more than 10,000 are fine. */
  readonly tps?: number
  /** The same seed and the same times give the same ring. Without one the first block number decides. */
  readonly seed?: number
  readonly geometry?: RingGeometry
  /** Publishes through a mapping instead of by position, as a node does. A full disk then ends the process. */
  readonly isMapped?: boolean
}

/** Modest by default: a stand-in for a node must not be what the machine is busy with. */
export const RING_WRITER_DEFAULTS = {
  chainId: 20_143,
  blockMs: 400,
  tps: 100,
  lanes: 16,
  abandonedShare: 0.04,
  invalidShare: 0.005,
  skippedVoteShare: 0.03,
  failShare: 0.02,
} as const

/** Events of a transaction of the simulated chain, and bytes of each with its share of payload; measured, rounded up. */
const EVENTS_PER_TXN = 24
const PAYLOAD_BYTES_PER_EVENT = 256
/** A reader may be away this long before it loses anything. */
const HISTORY_SECONDS = 60

/** A ring large enough for a minute, within what a node itself would make. */
export function geometryFor(tps: number): RingGeometry {
  const events = tps * EVENTS_PER_TXN * HISTORY_SECONDS
  return {
    capacity: powerOfTwo(events, 2 ** 16, 2 ** 21),
    payloadBytes: powerOfTwo(events * PAYLOAD_BYTES_PER_EVENT, 2 ** 27, 2 ** 29),
    contextBytes: 0,
  }
}

function powerOfTwo(least: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, 2 ** Math.ceil(Math.log2(Math.max(1, least)))))
}
