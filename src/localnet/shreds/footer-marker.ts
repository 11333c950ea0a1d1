import { Buffer } from 'node:buffer'
import type { BlockFooter } from '../chain/model.ts'

const MARKER_VERSION = 1
const FOOTER_KIND = 0
const MARKER_HEAD_BYTES = 8 + 2 + 1 + 2
const HASH_BYTES = 32

/**
 * A batch that is the block marker of a footer (SIMD-0307): u64 0 where entries have their count, u16 version, u8 kind, u16 length, then bank hash, u64 time
 * in nanoseconds, u8 length and user agent.
 */
export function encodeFooterMarker({ bankHash, producerTimeNanos, userAgent }: BlockFooter): Uint8Array {
  const agent = Buffer.from(userAgent)
  const bodyBytes = HASH_BYTES + 8 + 1 + agent.length
  const bytes = new Uint8Array(MARKER_HEAD_BYTES + bodyBytes)
  const view = new DataView(bytes.buffer)
  view.setUint16(8, MARKER_VERSION, true)
  view.setUint8(10, FOOTER_KIND)
  view.setUint16(11, bodyBytes, true)
  bytes.set(bankHash, MARKER_HEAD_BYTES)
  view.setBigUint64(MARKER_HEAD_BYTES + HASH_BYTES, producerTimeNanos, true)
  view.setUint8(MARKER_HEAD_BYTES + HASH_BYTES + 8, agent.length)
  bytes.set(agent, MARKER_HEAD_BYTES + HASH_BYTES + 9)
  return bytes
}
