import { AEAD_TAG_BYTES, type PacketKeys } from './keys.ts'
import { ByteReader, ByteWriter, CODES, QuicError } from './wire.ts'

export const VERSION_1 = 1
const CID_BYTES_MAX = 20

export type Level = 'initial' | 'handshake' | 'application'

/** One packet of a datagram, with the unprotected part of its header. */
export type PacketHead =
  | {
      readonly kind: 'protected'
      readonly level: Level
      readonly from: number
      /** Where the packet number begins. */
      readonly numberAt: number
      readonly to: number
      /** Empty for short headers, which do not name their source. */
      readonly source: Uint8Array
    }
  | {
      readonly kind: 'retry'
      readonly from: number
      readonly to: number
      readonly source: Uint8Array
      readonly token: Uint8Array
    }
  | { readonly kind: 'version-negotiation'; readonly source: Uint8Array; readonly versions: readonly number[] }
  /** A packet of another connection, or of a type that a client ignores; the packets after it may be valid. */
  | { readonly kind: 'skipped'; readonly to: number }

const LONG = 0x80
const FIXED = 0x40
const RETRY_TAG_BYTES = 16
/** The longest packet number and the sample after it. */
const PROTECTED_BYTES_MIN = 4 + 16

/** The packets that one datagram carries, one after the other; reading stops at the first that cannot be read. */
export function* readPacketHeads(datagram: Uint8Array, own: Uint8Array): Generator<PacketHead> {
  let at = 0
  while (at < datagram.length) {
    const head = readHead(datagram, at, own)
    if (head === undefined) return
    yield head
    if (head.kind === 'version-negotiation' || head.kind === 'retry') return
    at = head.to
  }
}

function readHead(datagram: Uint8Array, from: number, own: Uint8Array): PacketHead | undefined {
  const first = datagram[from] as number
  try {
    if ((first & LONG) === 0) return readShort(datagram, from, own)
    return readLong(new ByteReader(datagram, { from: from + 1 }), first, from, own)
  } catch (error) {
    if (error instanceof QuicError) return undefined
    throw error
  }
}

function readShort(datagram: Uint8Array, from: number, own: Uint8Array): PacketHead | undefined {
  const numberAt = from + 1 + own.length
  if (((datagram[from] as number) & FIXED) === 0 || numberAt + PROTECTED_BYTES_MIN > datagram.length) return undefined
  if (!isSame(datagram.subarray(from + 1, numberAt), own)) return undefined
  return { kind: 'protected', level: 'application', from, numberAt, to: datagram.length, source: NO_ID }
}

function readLong(read: ByteReader, first: number, from: number, own: Uint8Array): PacketHead | undefined {
  const version = read.u32()
  const destination = readId(read)
  const source = readId(read)
  if (version === 0) {
    if (!isSame(destination, own)) return undefined
    const versions: number[] = []
    while (read.left >= 4) versions.push(read.u32())
    return { kind: 'version-negotiation', source, versions }
  }
  if (version !== VERSION_1 || (first & FIXED) === 0) return undefined
  const type = (first >> 4) & 3
  if (type === 3) {
    if (!isSame(destination, own) || read.left < RETRY_TAG_BYTES) return undefined
    const token = read.take(read.left - RETRY_TAG_BYTES)
    return { kind: 'retry', from, to: read.end, source, token }
  }
  if (type === 0) read.take(read.varint())
  const length = read.varint()
  const numberAt = read.at
  read.take(length)
  if (type === 1 || length < PROTECTED_BYTES_MIN || !isSame(destination, own)) return { kind: 'skipped', to: read.at }
  return { kind: 'protected', level: type === 0 ? 'initial' : 'handshake', from, numberAt, to: read.at, source }
}

function readId(read: ByteReader): Uint8Array {
  const length = read.u8()
  if (length > CID_BYTES_MAX) throw new QuicError(CODES.protocolViolation, 'a connection id is too long')
  return read.take(length)
}

export type OpenedPacket = { readonly packetNumber: number; readonly payload: Uint8Array; readonly keyPhase: 0 | 1 }

/**
 * Removes the packet protection. `keysFor` chooses the keys by the key phase of a short header. The datagram is not changed. Undefined
 * when authentication fails, as for foreign and damaged packets.
 */
export function openPacket(
  datagram: Uint8Array,
  head: Extract<PacketHead, { kind: 'protected' }>,
  {
    headerKeys,
    keysFor,
    largest,
  }: { headerKeys: PacketKeys; keysFor(phase: 0 | 1, packetNumber: number): PacketKeys | undefined; largest: number },
): OpenedPacket | undefined {
  const { from, numberAt, to } = head
  const mask = headerKeys.headerMask(datagram.subarray(numberAt + 4, numberAt + 20))
  const isLong = head.level !== 'application'
  const first = (datagram[from] as number) ^ ((mask[0] as number) & (isLong ? 0x0f : 0x1f))
  const numberBytes = (first & 3) + 1
  const header = Uint8Array.from(datagram.subarray(from, numberAt + numberBytes))
  header[0] = first
  let truncated = 0
  for (let at = 0; at < numberBytes; at++) {
    const byte = (datagram[numberAt + at] as number) ^ (mask[at + 1] as number)
    header[numberAt - from + at] = byte
    truncated = truncated * 256 + byte
  }
  const packetNumber = decodePacketNumber(largest, truncated, numberBytes)
  const keyPhase = isLong ? 0 : (((first >> 2) & 1) as 0 | 1)
  const keys = keysFor(keyPhase, packetNumber)
  const payload = keys?.open(packetNumber, header, datagram.subarray(numberAt + numberBytes, to))
  if (payload === undefined) return undefined
  // Checked only after the packet is authenticated (RFC 9000 section 17.2 and 17.3).
  if ((first & (isLong ? 0x0c : 0x18)) !== 0) throw new QuicError(CODES.protocolViolation, 'reserved bits are set')
  if (payload.length === 0) throw new QuicError(CODES.protocolViolation, 'a packet without frames')
  return { packetNumber, payload, keyPhase }
}

/** RFC 9000 appendix A.3. */
export function decodePacketNumber(largest: number, truncated: number, numberBytes: number): number {
  const expected = largest + 1
  const window = 2 ** (numberBytes * 8)
  const candidate = expected - (expected % window) + truncated
  if (candidate <= expected - window / 2 && candidate + window < 2 ** 52) return candidate + window
  if (candidate > expected + window / 2 && candidate >= window) return candidate - window
  return candidate
}

export type PacketToWrite = {
  readonly level: Level
  readonly packetNumber: number
  /** The largest acknowledged number, or -1: it determines the length of the packet number. */
  readonly largestAcked: number
  readonly destination: Uint8Array
  readonly source: Uint8Array
  readonly token: Uint8Array
  readonly keyPhase: 0 | 1
  readonly payload: Uint8Array
  /** The packet is padded to this size. */
  readonly sizeMin: number
}

/** The largest overhead of a packet. */
export function packetOverhead(level: Level, destination: Uint8Array, source: Uint8Array, token: Uint8Array): number {
  if (level === 'application') return 1 + destination.length + 4 + AEAD_TAG_BYTES
  const tokenBytes = level === 'initial' ? 8 + token.length : 0
  return 1 + 4 + 1 + destination.length + 1 + source.length + tokenBytes + 2 + 4 + AEAD_TAG_BYTES
}

export function writePacket(packet: PacketToWrite, keys: PacketKeys): Uint8Array {
  const { level, packetNumber, largestAcked, destination, source, token, payload } = packet
  const numberBytes = packetNumber - largestAcked < 0x4000 ? 2 : 4
  const head = new ByteWriter(packetOverhead(level, destination, source, token))
  if (level === 'application') {
    head.u8(FIXED | (packet.keyPhase << 2) | (numberBytes - 1)).put(destination)
  } else {
    head.u8(LONG | FIXED | (level === 'initial' ? 0 : 0x20) | (numberBytes - 1)).u32(VERSION_1)
    head.u8(destination.length).put(destination).u8(source.length).put(source)
    if (level === 'initial') head.varint(token.length).put(token)
  }
  const lengthAt = level === 'application' ? -1 : head.room16()
  // The sample begins four bytes after the start of the packet number, so a short packet is padded to reach it.
  const bytesMin = Math.max(4 - numberBytes, packet.sizeMin - head.at - numberBytes - AEAD_TAG_BYTES)
  let body = payload
  if (body.length < bytesMin) {
    body = new Uint8Array(bytesMin)
    body.set(payload)
  }
  if (lengthAt >= 0) head.setVarint16(lengthAt, numberBytes + body.length + AEAD_TAG_BYTES)
  const numberAt = head.at
  for (let shift = numberBytes - 1; shift >= 0; shift--) head.u8(Math.floor(packetNumber / 256 ** shift) & 0xff)
  const header = head.written
  const sealed = keys.seal(packetNumber, header, body)
  const whole = new Uint8Array(header.length + sealed.length)
  whole.set(header)
  whole.set(sealed, header.length)
  const mask = keys.headerMask(whole.subarray(numberAt + 4, numberAt + 20))
  whole[0] = (whole[0] as number) ^ ((mask[0] as number) & (level === 'application' ? 0x1f : 0x0f))
  for (let at = 0; at < numberBytes; at++)
    whole[numberAt + at] = (whole[numberAt + at] as number) ^ (mask[at + 1] as number)
  return whole
}

export function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

const NO_ID = new Uint8Array(0)
