import { Buffer } from 'node:buffer'
import type { BlockFooter } from '../chain/model.ts'

/** Where entries have their count, a marker has 0. */
const COUNT_BYTES = 8
const MARKER_VERSION = 1
const FOOTER_KIND = 0
const UPDATE_PARENT_KIND = 2
const MARKER_HEAD_BYTES = COUNT_BYTES + 2 + 1 + 2
const HASH_BYTES = 32

/** The batch with the footer of a block (SIMD-0307): bank hash, u64 time in nanoseconds, u8 length and user agent. */
export function encodeFooterMarker({ bankHash, producerTimeNanos, userAgent }: BlockFooter): Uint8Array {
  const agent = Buffer.from(userAgent)
  const body = new Uint8Array(HASH_BYTES + 8 + 1 + agent.length)
  body.set(bankHash)
  new DataView(body.buffer).setBigUint64(HASH_BYTES, producerTimeNanos, true)
  body[HASH_BYTES + 8] = agent.length
  body.set(agent, HASH_BYTES + 9)
  return encodeMarker(FOOTER_KIND, body)
}

/** The batch after which the slot has another parent (SIMD-0337); the entries before it are void. */
export function encodeUpdateParentMarker(parent: { readonly slot: number; readonly blockId: Uint8Array }): Uint8Array {
  const body = new Uint8Array(8 + HASH_BYTES)
  new DataView(body.buffer).setBigUint64(0, BigInt(parent.slot), true)
  body.set(parent.blockId, 8)
  return encodeMarker(UPDATE_PARENT_KIND, body)
}

/** u64 0, u16 version, u8 kind, u16 length, body. */
function encodeMarker(kind: number, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(MARKER_HEAD_BYTES + body.length)
  const view = new DataView(bytes.buffer)
  view.setUint16(COUNT_BYTES, MARKER_VERSION, true)
  view.setUint8(COUNT_BYTES + 2, kind)
  view.setUint16(COUNT_BYTES + 3, body.length, true)
  bytes.set(body, MARKER_HEAD_BYTES)
  return bytes
}
