import { startTextFrame } from '../../platform/ws/frame.ts'

/**
 * A text frame with the bytes of `payload`, those from `from` to `to` replaced by `text`, which is ASCII. A notification of a node gets the
 * client's subscription id this way; every other byte is unchanged.
 */
export function spliceFrame(payload: Buffer, from: number, to: number, text: string): Buffer {
  const frame = startTextFrame(payload.length - (to - from) + text.length)
  payload.copy(frame.bytes, frame.from, 0, from)
  frame.bytes.write(text, frame.from + from, 'latin1')
  payload.copy(frame.bytes, frame.from + from + text.length, to)
  return frame.bytes
}

/** A complete response as a frame. */
export function bytesFrame(payload: Buffer): Buffer {
  return spliceFrame(payload, 0, 0, '')
}

/** The slot is within these bytes: `context` comes first, and slot notifications are short. */
const SLOT_WITHIN = 192
const SLOT = /"slot":\s*(\d{1,16})/
const ROOT = /"result":\s*(\d{1,16})/

/** The slot of a notification; undefined where it has none. */
export function slotOf(kind: string, payload: Buffer): number | undefined {
  const head = payload.toString('latin1', 0, SLOT_WITHIN)
  const match = (kind === 'root' ? ROOT : SLOT).exec(head)
  return match === null ? undefined : Number(match[1])
}
