import { Buffer } from 'node:buffer'
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

/** A key pair for signing: Node's KeyObject of the secret key and the raw bytes of the public key. */
export type SigningKey = { readonly publicKey: Uint8Array; readonly privateKey: KeyObject }

/**
 * The y coordinates of the points of small order, canonical and not, without the sign bit. Signatures for such a key can be forged
 * without a secret; Solana's verify_strict refuses such keys and such nonces. Node 26 does too, Node 20 accepts both.
 */
const SMALL_ORDER = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
])

/** The KeyObject of a raw public key; undefined when the bytes are not a point or a point of small order. */
export function importPublicKey(bytes: Uint8Array): KeyObject | undefined {
  if (bytes.length !== 32 || isSmallOrder(bytes)) return undefined
  try {
    const x = Buffer.from(bytes.buffer, bytes.byteOffset, 32).toString('base64url')
    return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  } catch {
    return undefined
  }
}

/** Verifies by the rules of validators. Importing the raw key takes about a fortieth of the time of the verification. */
export function verifyEd25519(message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array | KeyObject): boolean {
  const key = publicKey instanceof Uint8Array ? importPublicKey(publicKey) : publicKey
  return (
    key !== undefined && signature.length === 64 && !isSmallOrder(signature) && verify(null, message, key, signature)
  )
}

export function signEd25519(message: Uint8Array, key: SigningKey): Uint8Array {
  return new Uint8Array(sign(null, message, key.privateKey))
}

/** The key of a 32-byte secret seed, the first half of a Solana keypair file. */
export function createSigningKey(seed: Uint8Array): SigningKey {
  if (seed.length !== 32) throw new TypeError('an ed25519 seed has 32 bytes')
  // PKCS#8 with the curve's object id 1.3.101.112 (RFC 8410).
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  return { publicKey: new Uint8Array(Buffer.from(x, 'base64url')), privateKey }
}

/** Whether a key, or the nonce point of a signature, has small order. */
export function isSmallOrder(bytes: Uint8Array): boolean {
  // Every entry of the list begins with one of these bytes.
  const first = bytes[0] as number
  if (first > 0x01 && first !== 0x26 && first !== 0xc7 && (first < 0xec || first > 0xee)) return false
  const point = Buffer.from(bytes.subarray(0, 32))
  point[31] = (point[31] as number) & 0x7f
  return SMALL_ORDER.has(point.toString('hex'))
}
