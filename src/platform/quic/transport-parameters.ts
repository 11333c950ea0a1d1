import { ByteReader, ByteWriter, CODES, QuicError, varintLength } from './wire.ts'

/** The peer's transport parameters (RFC 9000 section 18.2). */
export type PeerParameters = {
  readonly originalDestination: Uint8Array | undefined
  readonly initialSource: Uint8Array | undefined
  readonly retrySource: Uint8Array | undefined
  readonly resetToken: Uint8Array | undefined
  /** 0 means none. */
  readonly idleTimeoutMs: number
  readonly udpPayloadBytesMax: number
  readonly dataMax: number
  readonly uniStreamDataMax: number
  readonly uniStreamsMax: number
  readonly ackDelayExponent: number
  readonly ackDelayMsMax: number
}

const ID = {
  originalDestination: 0x00,
  idleTimeout: 0x01,
  resetToken: 0x02,
  udpPayload: 0x03,
  data: 0x04,
  streamDataUni: 0x07,
  streamsBidi: 0x08,
  streamsUni: 0x09,
  ackDelayExponent: 0x0a,
  ackDelay: 0x0b,
  noMigration: 0x0c,
  idLimit: 0x0e,
  initialSource: 0x0f,
  retrySource: 0x10,
} as const

const fault = (message: string) => new QuicError(CODES.transportParameter, message)

export function readPeerParameters(bytes: Uint8Array): PeerParameters {
  const read = new ByteReader(bytes, { fault: CODES.transportParameter })
  const values = new Map<number, ByteReader>()
  while (read.left > 0) {
    const id = read.varint()
    if (values.has(id)) throw fault('a duplicate transport parameter')
    values.set(id, read.part(read.varint()))
  }
  const number = (id: number, otherwise: number, { least = 0, most = Number.MAX_SAFE_INTEGER } = {}) => {
    const part = values.get(id)
    if (part === undefined) return otherwise
    const value = part.varint()
    if (part.left > 0 || value < least || value > most) throw fault(`parameter ${id} is out of range`)
    return value
  }
  const opaque = (id: number, length?: number) => {
    const part = values.get(id)
    if (part === undefined) return undefined
    if (part.left > 20 || (length !== undefined && part.left !== length))
      throw fault(`parameter ${id} has a wrong length`)
    return Uint8Array.from(part.take(part.left))
  }
  number(ID.idLimit, 2, { least: 2 })
  number(ID.streamsBidi, 0, { most: 2 ** 60 })
  return {
    originalDestination: opaque(ID.originalDestination),
    initialSource: opaque(ID.initialSource),
    retrySource: opaque(ID.retrySource),
    resetToken: opaque(ID.resetToken, 16),
    idleTimeoutMs: number(ID.idleTimeout, 0),
    udpPayloadBytesMax: number(ID.udpPayload, 65_527, { least: 1200 }),
    dataMax: number(ID.data, 0),
    uniStreamDataMax: number(ID.streamDataUni, 0),
    uniStreamsMax: number(ID.streamsUni, 0, { most: 2 ** 60 }),
    ackDelayExponent: number(ID.ackDelayExponent, 3, { most: 20 }),
    ackDelayMsMax: number(ID.ackDelay, 25, { most: 2 ** 14 - 1 }),
  }
}

/** Compares the connection ids of the handshake with their authenticated copies: nothing on the path has changed them (RFC 9000 section 7.3). */
export function checkIds(
  peer: PeerParameters,
  known: Record<'originalDestination' | 'initialSource' | 'retrySource', Uint8Array | undefined>,
): void {
  for (const name of ['originalDestination', 'initialSource', 'retrySource'] as const) {
    const [reported, expected] = [peer[name], known[name]]
    const isSame =
      reported === undefined || expected === undefined
        ? reported === expected
        : Buffer.compare(reported, expected) === 0
    if (!isSame) throw fault('connection ids do not match the handshake')
  }
}

/** The client's parameters: no streams of the peer, no migration. */
export function writeOwnParameters(own: { idleTimeoutMs: number; source: Uint8Array; idsMax: number }): Uint8Array {
  const write = new ByteWriter(64)
  const number = (id: number, value: number) => write.varint(id).varint(varintLength(value)).varint(value)
  number(ID.idleTimeout, own.idleTimeoutMs)
  number(ID.udpPayload, 1472)
  number(ID.data, 0)
  number(ID.streamsBidi, 0)
  number(ID.streamsUni, 0)
  number(ID.idLimit, own.idsMax)
  write.varint(ID.noMigration).varint(0)
  write.varint(ID.initialSource).varint(own.source.length).put(own.source)
  return write.written
}
