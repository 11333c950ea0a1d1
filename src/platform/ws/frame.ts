const FIN_TEXT = 0x81
/** RSV1: the message is compressed (RFC 7692 section 6). */
const RSV1 = 0x40
const SHORT_MAX = 125
const LENGTH_16 = 126
const LENGTH_64 = 127

/**
 * One unmasked text message as a server sends it (RFC 6455 section 5.2). It is encoded once and can be written to many sockets. `allocate` is for
 * frames that are kept for long.
 */
export function encodeTextFrame(text: string, allocate?: (bytes: number) => Buffer): Buffer {
  const frame = startTextFrame(Buffer.byteLength(text), allocate)
  frame.bytes.write(text, frame.from, 'utf8')
  return frame.bytes
}

/** A text frame with its header written; the caller writes the payload from `from` on. */
export function startTextFrame(
  payloadBytes: number,
  allocate: (bytes: number) => Buffer = Buffer.allocUnsafe,
  isCompressed = false,
): { readonly bytes: Buffer; readonly from: number } {
  const from = payloadBytes <= SHORT_MAX ? 2 : payloadBytes <= 0xffff ? 4 : 10
  const bytes = allocate(from + payloadBytes)
  bytes[0] = isCompressed ? FIN_TEXT | RSV1 : FIN_TEXT
  if (from === 2) bytes[1] = payloadBytes
  else if (from === 4) {
    bytes[1] = LENGTH_16
    bytes.writeUInt16BE(payloadBytes, 2)
  } else {
    bytes[1] = LENGTH_64
    bytes.writeUInt32BE(Math.floor(payloadBytes / 0x1_0000_0000), 2)
    bytes.writeUInt32BE(payloadBytes % 0x1_0000_0000, 6)
  }
  return { bytes, from }
}

/** The payload of a frame of `encodeTextFrame`. */
export function framePayload(frame: Buffer): Buffer {
  const short = frame[1] as number
  return frame.subarray(short === LENGTH_16 ? 4 : short === LENGTH_64 ? 10 : 2)
}

/** Joins frames for one write. Consecutive sockets with the same frames, such as the subscribers of one subscription, share one joined buffer. */
export class JoinedFrames {
  #frames: readonly Buffer[] = []
  #bytes: Buffer | undefined

  of(frames: readonly Buffer[], totalBytes: number): Buffer {
    if (frames.length === 1) return frames[0] as Buffer
    if (this.#bytes !== undefined && isSame(frames, this.#frames)) return this.#bytes
    this.#frames = frames
    this.#bytes = Buffer.concat(frames, totalBytes)
    return this.#bytes
  }
}

function isSame(a: readonly Buffer[], b: readonly Buffer[]): boolean {
  return a.length === b.length && a.every((frame, index) => frame === b[index])
}
