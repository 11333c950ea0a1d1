import type { RingGeometry } from '../../evm/ring/layout.ts'
import type { RingChainOptions } from './chain.ts'

/** The simulated chain and the path of its ring. */
export type RingWriterOptions = Partial<Omit<RingChainOptions, 'txnsPerBlock'>> & {
  /** The ring file to create; its folder must exist. */
  readonly path: string
  readonly blockMs?: number
  /** Transactions per second: fractions and more than 10,000 are supported. */
  readonly tps?: number
  /** The same seed and the same times give the same ring. By default transactions follow from the first block number, and contracts are always the same. */
  readonly seed?: number
  readonly geometry?: RingGeometry
  /** Writes through a memory mapping, as a node does, instead of with positioned writes. A full disk then ends the process. */
  readonly isMapped?: boolean
}

/** Low load by default: the simulated chain must not dominate the machine. */
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

/** Events per transaction and bytes per event including payload; measured, rounded up. */
const EVENTS_PER_TXN = 24
const PAYLOAD_BYTES_PER_EVENT = 256
/** A reader may pause this long without losing events. */
const HISTORY_SECONDS = 60

/** A ring that holds one minute of events, within the sizes a node uses. */
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
