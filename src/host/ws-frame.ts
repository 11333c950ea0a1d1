const FIN_TEXT = 0x81
const SHORT_MAX = 125
const LENGTH_16 = 126
const LENGTH_64 = 127

/** One unmasked text message as a server sends it (RFC 6455 section 5.2), made once and written to as many sockets as wanted. */
export function encodeTextFrame(text: string): Buffer {
  const bytes = Buffer.byteLength(text)
  const headBytes = bytes <= SHORT_MAX ? 2 : bytes <= 0xffff ? 4 : 10
  const frame = Buffer.allocUnsafe(headBytes + bytes)
  frame[0] = FIN_TEXT
  if (headBytes === 2) frame[1] = bytes
  else if (headBytes === 4) {
    frame[1] = LENGTH_16
    frame.writeUInt16BE(bytes, 2)
  } else {
    frame[1] = LENGTH_64
    frame.writeUInt32BE(Math.floor(bytes / 0x1_0000_0000), 2)
    frame.writeUInt32BE(bytes % 0x1_0000_0000, 6)
  }
  frame.write(text, headBytes, 'utf8')
  return frame
}
