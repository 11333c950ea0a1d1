import type { KeyObject } from 'node:crypto'
import { createSigningKey } from '../../../src/solana/crypto/ed25519.ts'
import { tpuCertificate } from '../../../src/solana/crypto/tpu-certificate.ts'

export type QuicIdentity = { readonly publicKey: Uint8Array; readonly der: Uint8Array; readonly privateKey: KeyObject }

/** The n-th test key with its certificate, in the form that validators use. */
export function quicIdentity(n: number): QuicIdentity {
  const { publicKey, privateKey } = createSigningKey(new Uint8Array(32).fill(n))
  return { publicKey, privateKey, der: tpuCertificate(publicKey) }
}
