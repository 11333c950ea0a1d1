import { type Cipheriv, createCipheriv, createDecipheriv, createHmac } from 'node:crypto'

/** Keys of TLS_AES_128_GCM_SHA256, the one suite used here (RFC 9001 section 5). */
export type Secret = Uint8Array

const TAG_BYTES = 16
const SAMPLE_BYTES = 16
const VERSION_1_SALT = Buffer.from('38762cf7f55934b34d179ae6a4c80cadccbb7f0a', 'hex')
/** RFC 9001 section 5.8. */
const RETRY_KEY = Buffer.from('be0c690b9f66575a1d766b54e368c84e', 'hex')
const RETRY_NONCE = Buffer.from('461599d35d632bf2239825bb', 'hex')

export const AEAD_TAG_BYTES = TAG_BYTES

export function hkdfExtract(salt: Uint8Array, input: Uint8Array): Secret {
  return createHmac('sha256', salt).update(input).digest()
}

/** HKDF-Expand-Label of TLS 1.3 (RFC 8446 section 7.1), for up to 32 bytes. */
export function expandLabel(secret: Secret, label: string, context: Uint8Array, length: number): Uint8Array {
  const name = Buffer.from(`tls13 ${label}`, 'latin1')
  const info = Buffer.concat([
    Uint8Array.of(length >> 8, length & 0xff, name.length),
    name,
    Uint8Array.of(context.length),
    context,
    Uint8Array.of(1),
  ])
  return createHmac('sha256', secret).update(info).digest().subarray(0, length)
}

const NOTHING = new Uint8Array(0)

export function initialSecrets(destination: Uint8Array): { client: Secret; server: Secret } {
  const initial = hkdfExtract(VERSION_1_SALT, destination)
  return {
    client: expandLabel(initial, 'client in', NOTHING, 32),
    server: expandLabel(initial, 'server in', NOTHING, 32),
  }
}

export function nextSecret(secret: Secret): Secret {
  return expandLabel(secret, 'quic ku', NOTHING, 32)
}

/** The ciphertext with its tag, valid until the next call. */
export type Seal = (given: {
  readonly key: Uint8Array
  readonly nonce: Uint8Array
  readonly header: Uint8Array
  readonly payload: Uint8Array
}) => Uint8Array

export const nodeSeal: Seal = ({ key, nonce, header, payload }) => {
  const cipher = createCipheriv('aes-128-gcm', key, nonce).setAAD(header)
  const sealed = cipher.update(payload)
  cipher.final()
  return Buffer.concat([sealed, cipher.getAuthTag()])
}

/** Protects packets in one direction. */
export class PacketKeys {
  readonly #key: Uint8Array
  readonly #iv: Uint8Array
  readonly #headerKey: Uint8Array
  readonly #nonce = new Uint8Array(12)
  readonly #mask: Cipheriv
  readonly #seal: Seal

  /** A key update changes the key and the iv, never the key of the header protection. */
  constructor(
    secret: Secret,
    seal: Seal = nodeSeal,
    headerKey: Uint8Array = expandLabel(secret, 'quic hp', NOTHING, 16),
  ) {
    this.#key = expandLabel(secret, 'quic key', NOTHING, 16)
    this.#iv = expandLabel(secret, 'quic iv', NOTHING, 12)
    this.#headerKey = headerKey
    this.#seal = seal
    this.#mask = createCipheriv('aes-128-ecb', headerKey, null).setAutoPadding(false)
  }

  updated(secret: Secret): PacketKeys {
    return new PacketKeys(secret, this.#seal, this.#headerKey)
  }

  #nonceOf(packetNumber: number): Uint8Array {
    const nonce = this.#nonce
    nonce.set(this.#iv)
    let rest = packetNumber
    for (let at = 11; at >= 4 && rest > 0; at--) {
      nonce[at] = (nonce[at] as number) ^ (rest & 0xff)
      rest = Math.floor(rest / 256)
    }
    return nonce
  }

  /** The ciphertext with its tag, valid until the next call of any keys. */
  seal(packetNumber: number, header: Uint8Array, payload: Uint8Array): Uint8Array {
    return this.#seal({ key: this.#key, nonce: this.#nonceOf(packetNumber), header, payload })
  }

  /** Undefined when the packet was not made with these keys. */
  open(packetNumber: number, header: Uint8Array, sealed: Uint8Array): Uint8Array | undefined {
    if (sealed.length < TAG_BYTES) return undefined
    const at = sealed.length - TAG_BYTES
    const decipher = createDecipheriv('aes-128-gcm', this.#key, this.#nonceOf(packetNumber))
    decipher.setAAD(header).setAuthTag(sealed.subarray(at))
    try {
      const payload = decipher.update(sealed.subarray(0, at))
      decipher.final()
      return payload
    } catch {
      return undefined
    }
  }

  /** Five bytes of mask for the header (RFC 9001 section 5.4.3). */
  headerMask(sample: Uint8Array): Uint8Array {
    return this.#mask.update(sample.subarray(0, SAMPLE_BYTES))
  }
}

/** The tag that ends a Retry packet, over the first destination the client chose and the packet before the tag. */
export function retryTag(originalDestination: Uint8Array, packet: Uint8Array): Uint8Array {
  const pseudo = Buffer.concat([Uint8Array.of(originalDestination.length), originalDestination, packet])
  const cipher = createCipheriv('aes-128-gcm', RETRY_KEY, RETRY_NONCE).setAAD(pseudo)
  cipher.final()
  return cipher.getAuthTag()
}
