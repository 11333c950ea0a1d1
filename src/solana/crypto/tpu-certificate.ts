import { Buffer } from 'node:buffer'

/** ALPN protocol of a validator's TPU port. */
export const TPU_ALPN = 'solana-tpu'

/** Everything before and after the public key. Byte layout of agave's `tls-utils` (new_dummy_x509_certificate). */
const BEFORE_KEY = Buffer.concat([
  // Certificate, TBSCertificate, version 3, serial of eight 0x01, Ed25519.
  Buffer.from(`3081f63081a9a0030201020208${'01'.repeat(8)}300506032b6570`, 'hex'),
  // Issuer: common name "Solana node".
  Buffer.from('30163114301206035504030c0b', 'hex'),
  Buffer.from('Solana node', 'latin1'),
  // Validity, from UTCTime to GeneralizedTime; empty subject.
  Buffer.from('3020170d', 'hex'),
  Buffer.from('700101000000Z', 'latin1'),
  Buffer.from('180f', 'hex'),
  Buffer.from('40960101000000Z', 'latin1'),
  Buffer.from('3000', 'hex'),
  // SubjectPublicKeyInfo of an Ed25519 key.
  Buffer.from('302a300506032b6570032100', 'hex'),
])
const AFTER_KEY = Buffer.concat([
  // Critical subjectAltName "localhost", critical and empty basicConstraints.
  Buffer.from('a329302730170603551d110101ff040d300b8209', 'hex'),
  Buffer.from('localhost', 'latin1'),
  Buffer.from('300c0603551d130101ff04023000', 'hex'),
  // A placeholder for the signature: it is never checked, because the handshake proves possession of the key.
  Buffer.from(`300506032b6570034100${'ff'.repeat(64)}`, 'hex'),
])

/** The self-signed certificate with which a validator or its client presents its identity key. */
export function tpuCertificate(publicKey: Uint8Array): Uint8Array {
  if (publicKey.length !== 32) throw new TypeError('an ed25519 public key has 32 bytes')
  return new Uint8Array(Buffer.concat([BEFORE_KEY, publicKey, AFTER_KEY]))
}
