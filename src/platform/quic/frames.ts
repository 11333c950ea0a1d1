import { ByteReader, type ByteWriter, CODES, QuicError, varintLength } from './wire.ts'

export type AckRange = { readonly from: number; readonly to: number }

/** The frames of RFC 9000 section 19 that a client which only sends streams has to understand. */
export type Frame =
  | { readonly type: 'padding' }
  | { readonly type: 'ping' }
  | { readonly type: 'handshake-done' }
  | { readonly type: 'ack'; readonly ranges: readonly AckRange[]; readonly delay: number }
  | { readonly type: 'crypto'; readonly offset: number; readonly data: Uint8Array }
  | { readonly type: 'new-token'; readonly token: Uint8Array }
  | { readonly type: 'max-data'; readonly max: number }
  | { readonly type: 'max-stream-data'; readonly stream: number; readonly max: number }
  | { readonly type: 'max-streams'; readonly isUni: boolean; readonly max: number }
  | { readonly type: 'stop-sending'; readonly stream: number; readonly code: number }
  /** Streams of the peer, of which none is allowed. */
  | { readonly type: 'peer-stream'; readonly stream: number }
  | { readonly type: 'blocked' }
  | {
      readonly type: 'new-connection-id'
      readonly sequence: number
      readonly retirePrior: number
      readonly id: Uint8Array
      readonly resetToken: Uint8Array
    }
  | { readonly type: 'retire-connection-id'; readonly sequence: number }
  | { readonly type: 'path-challenge' | 'path-response'; readonly data: Uint8Array }
  | { readonly type: 'close'; readonly isApplication: boolean; readonly code: number; readonly reason: string }

/** ACK ranges read from one frame; more are an attempt to waste time. */
const ACK_RANGES_MAX = 512
const REASON_CHARS_MAX = 200
const STREAMS_MAX = 2 ** 60

export function* readFrames(payload: Uint8Array): Generator<Frame> {
  const read = new ByteReader(payload)
  while (read.left > 0) {
    const frame = readFrame(read)
    if (frame !== undefined) yield frame
  }
}

function readFrame(read: ByteReader): Frame | undefined {
  const first = read.bytes[read.at] as number
  const type = read.varint()
  // A frame type is written in its shortest form (RFC 9000 section 12.4).
  if (type < 0x40 && first >= 0x40)
    throw new QuicError(CODES.protocolViolation, 'a frame type that is not in its shortest form')
  if (type >= 0x08 && type <= 0x0f) return readStream(read, type)
  switch (type) {
    case 0x00:
      while (read.left > 0 && read.bytes[read.at] === 0) read.at += 1
      return { type: 'padding' }
    case 0x01:
      return { type: 'ping' }
    case 0x02:
    case 0x03:
      return readAck(read, type === 0x03)
    case 0x04: {
      const stream = read.varint()
      read.varint()
      read.varint()
      return { type: 'peer-stream', stream }
    }
    case 0x05:
      return { type: 'stop-sending', stream: read.varint(), code: read.varint() }
    case 0x06: {
      const offset = read.varint()
      return { type: 'crypto', offset, data: read.take(read.varint()) }
    }
    case 0x07: {
      const token = read.take(read.varint())
      if (token.length === 0) throw new QuicError(CODES.frameEncoding, 'an empty token')
      return { type: 'new-token', token }
    }
    case 0x10:
      return { type: 'max-data', max: read.varint() }
    case 0x11:
      return { type: 'max-stream-data', stream: read.varint(), max: read.varint() }
    case 0x12:
    case 0x13: {
      const max = read.varint()
      if (max > STREAMS_MAX) throw new QuicError(CODES.frameEncoding, 'a stream limit above 2^60')
      return { type: 'max-streams', isUni: type === 0x13, max }
    }
    case 0x14:
    case 0x16:
    case 0x17:
      read.varint()
      return { type: 'blocked' }
    case 0x15: {
      const stream = read.varint()
      read.varint()
      return { type: 'peer-stream', stream }
    }
    case 0x18:
      return readNewId(read)
    case 0x19:
      return { type: 'retire-connection-id', sequence: read.varint() }
    case 0x1a:
      return { type: 'path-challenge', data: read.take(8) }
    case 0x1b:
      return { type: 'path-response', data: read.take(8) }
    case 0x1c:
    case 0x1d: {
      const code = read.varint()
      if (type === 0x1c) read.varint()
      const reason = read.take(read.varint())
      return { type: 'close', isApplication: type === 0x1d, code, reason: printable(reason) }
    }
    case 0x1e:
      return { type: 'handshake-done' }
    default:
      throw new QuicError(CODES.frameEncoding, `frame type ${type} is not known`)
  }
}

function readStream(read: ByteReader, type: number): Frame {
  const stream = read.varint()
  if ((type & 4) !== 0) read.varint()
  read.take((type & 2) === 0 ? read.left : read.varint())
  return { type: 'peer-stream', stream }
}

function readAck(read: ByteReader, hasEcn: boolean): Frame {
  const largest = read.varint()
  const delay = read.varint()
  const more = read.varint()
  const ranges: AckRange[] = []
  let to = largest
  let from = to - read.varint()
  if (from < 0) throw new QuicError(CODES.frameEncoding, 'an acknowledged range below zero')
  ranges.push({ from, to })
  for (let left = more; left > 0; left--) {
    to = from - read.varint() - 2
    from = to - read.varint()
    if (from < 0) throw new QuicError(CODES.frameEncoding, 'an acknowledged range below zero')
    if (ranges.length < ACK_RANGES_MAX) ranges.push({ from, to })
  }
  if (hasEcn) for (let count = 0; count < 3; count++) read.varint()
  return { type: 'ack', ranges, delay }
}

function readNewId(read: ByteReader): Frame {
  const sequence = read.varint()
  const retirePrior = read.varint()
  const length = read.u8()
  if (length < 1 || length > 20 || retirePrior > sequence)
    throw new QuicError(CODES.frameEncoding, 'an invalid NEW_CONNECTION_ID')
  return { type: 'new-connection-id', sequence, retirePrior, id: read.take(length), resetToken: read.take(16) }
}

/** The peer's text goes to logs and receipts, so it is sanitized. */
function printable(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, REASON_CHARS_MAX))
    .toString('latin1')
    .replaceAll(/[^\x20-\x7e]/g, ' ')
}

export function isAckEliciting({ type }: Frame): boolean {
  return type !== 'padding' && type !== 'ack' && type !== 'close'
}

/** The overhead of a STREAM frame. */
export function streamOverhead(stream: number, offset: number, length: number): number {
  return 1 + varintLength(stream) + (offset === 0 ? 0 : varintLength(offset)) + varintLength(length)
}

export function writeStream(
  write: ByteWriter,
  frame: { stream: number; offset: number; data: Uint8Array; isLast: boolean },
): void {
  const { stream, offset, data, isLast } = frame
  write.u8(0x08 | (offset === 0 ? 0 : 0x04) | 0x02 | (isLast ? 0x01 : 0)).varint(stream)
  if (offset !== 0) write.varint(offset)
  write.varint(data.length).put(data)
}

export function writeCrypto(write: ByteWriter, offset: number, data: Uint8Array): void {
  write.u8(0x06).varint(offset).varint(data.length).put(data)
}

/** As many ranges as fit, the newest first. Returns false where not even one does. */
export function writeAck(write: ByteWriter, ranges: readonly AckRange[], delay: number): boolean {
  const [first] = ranges
  const fixed = 1 + 8 + 8 + 2 + 8
  if (first === undefined || write.left < fixed) return false
  const count = Math.min(ranges.length - 1, Math.floor((write.left - fixed) / 16), 63)
  write
    .u8(0x02)
    .varint(first.to)
    .varint(delay)
    .varint(count)
    .varint(first.to - first.from)
  let below = first.from
  for (const { from, to } of ranges.slice(1, count + 1)) {
    write.varint(below - to - 2).varint(to - from)
    below = from
  }
  return true
}

export function writeClose(write: ByteWriter, close: { code: number; isApplication: boolean; reason: string }): void {
  const reason = Buffer.from(close.reason.slice(0, 100), 'latin1')
  write.u8(close.isApplication ? 0x1d : 0x1c).varint(close.code)
  if (!close.isApplication) write.varint(0)
  write.varint(reason.length).put(reason)
}
