import { ByteReader, ByteWriter, CODES, QuicError } from './wire.ts'

/** Handshake messages of TLS 1.3 (RFC 8446 section 4), those a client with one suite, one group and one signature scheme needs. */

export const MESSAGE = {
  clientHello: 1,
  serverHello: 2,
  newSessionTicket: 4,
  encryptedExtensions: 8,
  certificate: 11,
  certificateRequest: 13,
  certificateVerify: 15,
  finished: 20,
} as const

const SUITE = 0x1301
const X25519 = 0x001d
export const ED25519 = 0x0807
const TLS13 = 0x0304
const EXTENSION = { serverName: 0, groups: 10, signatures: 13, alpn: 16, versions: 43, keyShare: 51, quic: 57 } as const
/** The random of a ServerHello that is a HelloRetryRequest (RFC 8446 section 4.1.3). */
const RETRY_RANDOM = 'cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c'

/** TLS alerts (RFC 8446 section 6), as QUIC carries them. */
export const ALERT = {
  unexpectedMessage: 10,
  handshakeFailure: 40,
  badCertificate: 42,
  illegalParameter: 47,
  decodeError: 50,
  decryptError: 51,
  missingExtension: 109,
  noApplicationProtocol: 120,
} as const

export function alert(description: number, reason: string): QuicError {
  return new QuicError(CODES.crypto + description, reason)
}

const reader = (bytes: Uint8Array) => new ByteReader(bytes, { fault: CODES.crypto + ALERT.decodeError })

export type Hello = {
  readonly random: Uint8Array
  readonly publicKey: Uint8Array
  readonly serverName: string
  readonly alpn: string
  readonly transportParameters: Uint8Array
}

export function writeClientHello(hello: Hello): Uint8Array {
  const name = Buffer.from(hello.serverName, 'latin1')
  const alpn = Buffer.from(hello.alpn, 'latin1')
  const extensions = Buffer.concat([
    ...(name.length === 0 ? [] : [extension(EXTENSION.serverName, vector16(Uint8Array.of(0), vector16(name)))]),
    extension(EXTENSION.groups, vector16(u16(X25519))),
    extension(EXTENSION.signatures, vector16(u16(ED25519))),
    extension(EXTENSION.alpn, vector16(vector8(alpn))),
    extension(EXTENSION.versions, vector8(u16(TLS13))),
    extension(EXTENSION.keyShare, vector16(u16(X25519), vector16(hello.publicKey))),
    extension(EXTENSION.quic, hello.transportParameters),
  ])
  return message(
    MESSAGE.clientHello,
    u16(0x0303),
    hello.random,
    // No session id: QUIC does not use middlebox compatibility mode.
    vector8(),
    vector16(u16(SUITE)),
    vector8(Uint8Array.of(0)),
    vector16(extensions),
  )
}

/** The server's key share. */
export function readServerHello(body: Uint8Array): Uint8Array {
  const read = reader(body)
  read.u16()
  const random = read.take(32)
  if (Buffer.from(random).toString('hex') === RETRY_RANDOM) {
    throw alert(ALERT.handshakeFailure, 'the server requests another key exchange (HelloRetryRequest)')
  }
  if (read.u8() !== 0) throw alert(ALERT.illegalParameter, 'a session id that was not sent')
  if (read.u16() !== SUITE || read.u8() !== 0)
    throw alert(ALERT.illegalParameter, 'a cipher suite that was not offered')
  let share: Uint8Array | undefined
  let isTls13 = false
  for (const { type, data } of readExtensions(read)) {
    if (type === EXTENSION.versions) isTls13 = data.u16() === TLS13
    if (type !== EXTENSION.keyShare) continue
    if (data.u16() !== X25519) throw alert(ALERT.illegalParameter, 'a group that was not offered')
    share = data.take(data.u16())
  }
  expectEnd(read)
  if (!isTls13 || share?.length !== 32) throw alert(ALERT.missingExtension, 'no TLS 1.3 key share')
  return share
}

export function readEncryptedExtensions(body: Uint8Array): {
  alpn: string | undefined
  transportParameters: Uint8Array
} {
  const read = reader(body)
  let alpn: string | undefined
  let transportParameters: Uint8Array | undefined
  for (const { type, data } of readExtensions(read)) {
    if (type === EXTENSION.alpn) {
      const list = data.part(data.u16())
      alpn = Buffer.from(list.take(list.u8())).toString('latin1')
    } else if (type === EXTENSION.quic) transportParameters = data.take(data.left)
  }
  expectEnd(read)
  if (transportParameters === undefined) throw alert(ALERT.missingExtension, 'no transport parameters')
  return { alpn, transportParameters }
}

/** The context to echo, and whether the server takes an ed25519 signature. */
export function readCertificateRequest(body: Uint8Array): { context: Uint8Array; takesEd25519: boolean } {
  const read = reader(body)
  const context = read.take(read.u8())
  let takesEd25519 = false
  for (const { type, data } of readExtensions(read)) {
    if (type !== EXTENSION.signatures) continue
    const list = data.part(data.u16())
    while (list.left > 0) if (list.u16() === ED25519) takesEd25519 = true
  }
  expectEnd(read)
  return { context, takesEd25519 }
}

/** The first certificate of the chain. */
export function readCertificate(body: Uint8Array): Uint8Array {
  const read = reader(body)
  if (read.u8() !== 0) throw alert(ALERT.illegalParameter, 'a certificate with a context')
  const list = read.part(read.u24())
  expectEnd(read)
  const certificate = list.take(list.u24())
  if (certificate.length === 0) throw alert(ALERT.badCertificate, 'an empty certificate')
  return certificate
}

export function readCertificateVerify(body: Uint8Array): Uint8Array {
  const read = reader(body)
  if (read.u16() !== ED25519) throw alert(ALERT.illegalParameter, 'a signature scheme that was not offered')
  const signature = read.take(read.u16())
  expectEnd(read)
  return signature
}

/** Without a certificate the list is empty, which declines the request. */
export function writeCertificate(context: Uint8Array, certificate: Uint8Array | undefined): Uint8Array {
  const entry = certificate === undefined ? NOTHING : Buffer.concat([vector24(certificate), vector16()])
  return message(MESSAGE.certificate, vector8(context), vector24(entry))
}

export function writeCertificateVerify(signature: Uint8Array): Uint8Array {
  return message(MESSAGE.certificateVerify, u16(ED25519), vector16(signature))
}

export function writeFinished(verifyData: Uint8Array): Uint8Array {
  return message(MESSAGE.finished, verifyData)
}

/** What CertificateVerify signs (RFC 8446 section 4.4.3). */
export function signedContent(side: 'client' | 'server', transcriptHash: Uint8Array): Uint8Array {
  const name = side === 'client' ? 'TLS 1.3, client CertificateVerify' : 'TLS 1.3, server CertificateVerify'
  return Buffer.concat([Buffer.alloc(64, 0x20), Buffer.from(`${name}\0`, 'latin1'), transcriptHash])
}

function* readExtensions(read: ByteReader): Generator<{ type: number; data: ByteReader }> {
  const list = read.part(read.u16())
  const seen = new Set<number>()
  while (list.left > 0) {
    const type = list.u16()
    if (seen.has(type)) throw alert(ALERT.illegalParameter, 'a duplicate extension')
    seen.add(type)
    yield { type, data: list.part(list.u16()) }
  }
}

function expectEnd(read: ByteReader): void {
  if (read.left > 0) throw alert(ALERT.decodeError, 'bytes after the end of a message')
}

const NOTHING = new Uint8Array(0)
const u16 = (value: number) => Uint8Array.of(value >> 8, value & 0xff)

function vector8(...parts: Uint8Array[]): Uint8Array {
  const body = Buffer.concat(parts)
  return Buffer.concat([Uint8Array.of(body.length), body])
}

function vector16(...parts: Uint8Array[]): Uint8Array {
  const body = Buffer.concat(parts)
  return Buffer.concat([u16(body.length), body])
}

function vector24(body: Uint8Array): Uint8Array {
  return new ByteWriter(3 + body.length).u24(body.length).put(body).bytes
}

function extension(type: number, data: Uint8Array): Uint8Array {
  return Buffer.concat([u16(type), vector16(data)])
}

function message(type: number, ...parts: Uint8Array[]): Uint8Array {
  return Buffer.concat([Uint8Array.of(type), vector24(Buffer.concat(parts))])
}
