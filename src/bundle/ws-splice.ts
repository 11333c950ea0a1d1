const FIN_TEXT = 0x81
const SHORT_MAX = 125
const LENGTH_16 = 126
const LENGTH_64 = 127

/**
 * A text frame (RFC 6455 section 5.2) with the bytes of `payload`, those from `from` to `to` replaced by `text`, which is ASCII. This is how a
 * notification of a node gets the id of the client: every other byte leaves as it came.
 */
export function spliceFrame(payload: Buffer, from: number, to: number, text: string): Buffer {
  const bytes = payload.length - (to - from) + text.length
  const headBytes = bytes <= SHORT_MAX ? 2 : bytes <= 0xffff ? 4 : 10
  const frame = Buffer.allocUnsafe(headBytes + bytes)
  frame[0] = FIN_TEXT
  if (headBytes === 2) frame[1] = bytes
  else if (headBytes === 4) {
    frame[1] = LENGTH_16
    frame.writeUInt16BE(bytes, 2)
  } else {
    frame[1] = LENGTH_64
    frame.writeBigUInt64BE(BigInt(bytes), 2)
  }
  payload.copy(frame, headBytes, 0, from)
  frame.write(text, headBytes + from, 'latin1')
  payload.copy(frame, headBytes + from + text.length, to)
  return frame
}

/** The bytes of a whole answer as a frame. */
export function bytesFrame(payload: Buffer): Buffer {
  return spliceFrame(payload, 0, 0, '')
}

/** Where a node puts the slot of a notification: `context` stands first, and slot notifications are short. */
const SLOT_WITHIN = 192
const SLOT = /"slot":\s*(\d{1,16})/
const ROOT = /"result":\s*(\d{1,16})/

/** The slot a notification is about; undefined where it has none. */
export function slotOf(kind: string, payload: Buffer): number | undefined {
  const head = payload.toString('latin1', 0, SLOT_WITHIN)
  const match = (kind === 'root' ? ROOT : SLOT).exec(head)
  return match === null ? undefined : Number(match[1])
}
