import type { KeyObject } from 'node:crypto'
import { setBounded } from '../../core/bounded-map.ts'
import { importPublicKey, verifyEd25519 } from '../../solana/crypto/ed25519.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'

/** Whether all signatures of a transaction are valid. Takes about 0.3 ms for each. */
export type VerifySignatures = (transaction: ParsedTransaction) => boolean

/** Imported keys that are kept: most transactions are signed by the same few keys, and importing one costs a twentieth of a verification. */
const KEYS_MAX = 1024

export function createVerifySignatures(): VerifySignatures {
  const keys = new Map<string, KeyObject>()

  function keyOf(bytes: Uint8Array): KeyObject | undefined {
    const name = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
    const known = keys.get(name)
    if (known !== undefined) return known
    const key = importPublicKey(bytes)
    if (key === undefined) return undefined
    setBounded(keys, name, key, KEYS_MAX)
    return key
  }

  return ({ message, signatures, staticKeys }) =>
    signatures.every((signature, at) => {
      const key = keyOf(staticKeys[at] as Uint8Array)
      return key !== undefined && verifyEd25519(message, signature, key)
    })
}
