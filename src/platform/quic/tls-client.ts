import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  type KeyObject,
  sign,
  timingSafeEqual,
  verify,
  X509Certificate,
} from 'node:crypto'
import { expandLabel, hkdfExtract, type Secret } from './keys.ts'
import type { Level } from './packet.ts'
import {
  ALERT,
  alert,
  MESSAGE,
  readCertificate,
  readCertificateRequest,
  readCertificateVerify,
  readEncryptedExtensions,
  readServerHello,
  signedContent,
  writeCertificate,
  writeCertificateVerify,
  writeClientHello,
  writeFinished,
} from './tls-messages.ts'

export type TlsOptions = {
  readonly serverName: string
  readonly alpn: string
  /** Sent when the server requests one; DER of an ed25519 certificate and its key. */
  readonly certificate?: { readonly der: Uint8Array; readonly privateKey: KeyObject } | undefined
}

export type TlsDeps = {
  randomBytes(count: number): Uint8Array
  /** Handshake bytes for the peer. */
  onSend(level: Level, bytes: Uint8Array): void
  onSecrets(level: 'handshake' | 'application', secrets: { readonly client: Secret; readonly server: Secret }): void
  onTransportParameters(bytes: Uint8Array): void
  /**
   * The server has proved to hold this ed25519 key. There is no certificate authority: the caller decides whether the key is right, and false
   * ends the handshake.
   */
  isPeer(publicKey: Uint8Array): boolean
  onDone(): void
}

export type TlsClient = {
  start(transportParameters: Uint8Array): void
  /** One complete handshake message, in order. Throws a QuicError when it is unexpected or malformed. */
  receive(level: Level, type: number, message: Uint8Array): void
}

type State =
  | 'start'
  | 'server-hello'
  | 'extensions'
  | 'certificate-or-request'
  | 'certificate'
  | 'verify'
  | 'finished'
  | 'done'

const ZEROS = new Uint8Array(32)
/** PKCS#8 of a raw X25519 secret (RFC 8410). */
const X25519_PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex')
const X25519_SPKI = Buffer.from('302a300506032b656e032100', 'hex')
const ED25519_SPKI_BYTES = 44

/** The client side of a TLS 1.3 handshake with X25519, AES-128-GCM-SHA256 and ed25519 certificates on both sides. */
export function createTlsClient(options: TlsOptions, deps: TlsDeps): TlsClient {
  const secretKey = createPrivateKey({
    key: Buffer.concat([X25519_PKCS8, deps.randomBytes(32)]),
    format: 'der',
    type: 'pkcs8',
  })
  const messages: Uint8Array[] = []
  let state: State = 'start'
  let handshakeSecret: Secret = ZEROS
  let clientSecret: Secret = ZEROS
  let serverSecret: Secret = ZEROS
  let serverKey: KeyObject | undefined
  let request: ReturnType<typeof readCertificateRequest> | undefined

  const transcript = () => Buffer.from(createHash('sha256').update(Buffer.concat(messages)).digest())
  const derive = (secret: Secret, label: string, context: Uint8Array) => expandLabel(secret, label, context, 32)
  const emptyHash = createHash('sha256').digest()

  function send(level: Level, message: Uint8Array): void {
    messages.push(message)
    deps.onSend(level, message)
  }

  function onServerHello(body: Uint8Array): void {
    const share = readServerHello(body)
    const publicKey = createPublicKey({ key: Buffer.concat([X25519_SPKI, share]), format: 'der', type: 'spki' })
    const shared = agree(secretKey, publicKey)
    const early = hkdfExtract(ZEROS, ZEROS)
    handshakeSecret = hkdfExtract(derive(early, 'derived', emptyHash), shared)
    const hash = transcript()
    clientSecret = derive(handshakeSecret, 'c hs traffic', hash)
    serverSecret = derive(handshakeSecret, 's hs traffic', hash)
    deps.onSecrets('handshake', { client: clientSecret, server: serverSecret })
  }

  function onCertificate(body: Uint8Array): void {
    serverKey = keyOf(readCertificate(body))
  }

  /** `hash` is of everything before this message. */
  function onVerify(body: Uint8Array, hash: Uint8Array): void {
    const signature = readCertificateVerify(body)
    if (serverKey === undefined || !verify(null, signedContent('server', hash), serverKey, signature)) {
      throw alert(ALERT.decryptError, 'the server does not hold the key of its certificate')
    }
    if (!deps.isPeer(rawKeyOf(serverKey))) throw alert(ALERT.badCertificate, 'another key than expected')
  }

  function onFinished(body: Uint8Array, hash: Uint8Array): void {
    const expected = finishedData(serverSecret, hash)
    if (body.length !== expected.length || !timingSafeEqual(body, expected)) {
      throw alert(ALERT.decryptError, 'the Finished message of the server is invalid')
    }
    const master = hkdfExtract(derive(handshakeSecret, 'derived', emptyHash), ZEROS)
    const upToServer = transcript()
    if (request !== undefined) {
      const { certificate } = options
      const shown = request.takesEd25519 ? certificate : undefined
      send('handshake', writeCertificate(request.context, shown?.der))
      if (shown !== undefined) {
        send('handshake', writeCertificateVerify(sign(null, signedContent('client', transcript()), shown.privateKey)))
      }
    }
    send('handshake', writeFinished(finishedData(clientSecret, transcript())))
    deps.onSecrets('application', {
      client: derive(master, 'c ap traffic', upToServer),
      server: derive(master, 's ap traffic', upToServer),
    })
    messages.length = 0
    deps.onDone()
  }

  return {
    start(transportParameters) {
      const publicKey = createPublicKey(secretKey).export({ format: 'der', type: 'spki' }).subarray(-32)
      const { serverName, alpn } = options
      state = 'server-hello'
      send(
        'initial',
        writeClientHello({ random: deps.randomBytes(32), publicKey, serverName, alpn, transportParameters }),
      )
    },

    receive(level, type, message) {
      const body = message.subarray(4)
      if (state === 'done') {
        // Session tickets are ignored; nothing else may follow the handshake.
        if (level === 'application' && type === MESSAGE.newSessionTicket) return
        throw alert(ALERT.unexpectedMessage, `message ${type} after the handshake`)
      }
      if (level !== (state === 'server-hello' ? 'initial' : 'handshake')) {
        throw alert(ALERT.unexpectedMessage, `a handshake message in ${level} packets`)
      }
      const before = state === 'verify' || state === 'finished' ? transcript() : ZEROS
      messages.push(Uint8Array.from(message))
      switch (`${state} ${type}`) {
        case `server-hello ${MESSAGE.serverHello}`:
          onServerHello(body)
          state = 'extensions'
          return
        case `extensions ${MESSAGE.encryptedExtensions}`: {
          const { alpn, transportParameters } = readEncryptedExtensions(body)
          if (alpn !== options.alpn)
            throw alert(ALERT.noApplicationProtocol, 'the server does not support the ALPN protocol')
          deps.onTransportParameters(transportParameters)
          state = 'certificate-or-request'
          return
        }
        case `certificate-or-request ${MESSAGE.certificateRequest}`:
          request = readCertificateRequest(body)
          state = 'certificate'
          return
        case `certificate-or-request ${MESSAGE.certificate}`:
        case `certificate ${MESSAGE.certificate}`:
          onCertificate(body)
          state = 'verify'
          return
        case `verify ${MESSAGE.certificateVerify}`:
          onVerify(body, before)
          state = 'finished'
          return
        case `finished ${MESSAGE.finished}`:
          state = 'done'
          onFinished(body, before)
          return
        default:
          throw alert(ALERT.unexpectedMessage, `message ${type} in state ${state}`)
      }
    },
  }
}

export function finishedData(secret: Secret, transcriptHash: Uint8Array): Uint8Array {
  return createHmac('sha256', expandLabel(secret, 'finished', new Uint8Array(0), 32))
    .update(transcriptHash)
    .digest()
}

function agree(privateKey: KeyObject, publicKey: KeyObject): Uint8Array {
  try {
    return diffieHellman({ privateKey, publicKey })
  } catch {
    // A point of small order gives a secret of zeros, which OpenSSL refuses (RFC 8446 section 7.4.2).
    throw alert(ALERT.illegalParameter, 'an invalid key share')
  }
}

function keyOf(der: Uint8Array): KeyObject {
  let key: KeyObject
  try {
    key = new X509Certificate(der).publicKey
  } catch {
    throw alert(ALERT.badCertificate, 'a malformed certificate')
  }
  if (key.asymmetricKeyType !== 'ed25519') throw alert(ALERT.badCertificate, 'a certificate without an ed25519 key')
  return key
}

function rawKeyOf(key: KeyObject): Uint8Array {
  const der = key.export({ format: 'der', type: 'spki' })
  if (der.length !== ED25519_SPKI_BYTES) throw alert(ALERT.badCertificate, 'a certificate without an ed25519 key')
  return Uint8Array.from(der.subarray(-32))
}
