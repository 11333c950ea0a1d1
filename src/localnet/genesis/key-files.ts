import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { createFileAtomic } from '../../platform/files/atomic.ts'
import { readIfThere } from '../../platform/files/optional.ts'
import { checkSecretFile } from '../../platform/files/state-folder.ts'
import { createSigningKey, type SigningKey } from '../../solana/crypto/ed25519.ts'
import { secretOf } from './keys.ts'

/** The key in `DIR/NAME.json`, in the format of `solana-keygen` (64 numbers: seed, public key); created with mode 0600 when absent. */
export async function openKeyFile(dir: string, name: string, random: Random): Promise<SigningKey> {
  const path = join(dir, `${name}.json`)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const text = readIfThere(path)
  if (text === undefined) {
    const key = createSigningKey(random.bytes(32))
    await createFileAtomic(path, (put) => put(JSON.stringify([...secretOf(key), ...key.publicKey])))
    return key
  }
  await checkSecretFile(path)
  return parseKeyFile(text, path)
}

/** The error does not quote the text: it may hold a secret. */
export function parseKeyFile(text: string, path: string): SigningKey {
  const numbers = readNumbers(text)
  if (numbers?.length !== 64) {
    throw new ServiceError('secret-invalid', `${path} is not a keypair file: it must hold a JSON array of 64 bytes`, {
      fields: { path },
    })
  }
  const key = createSigningKey(numbers.subarray(0, 32))
  if (Buffer.compare(key.publicKey, numbers.subarray(32)) !== 0) {
    throw new ServiceError(
      'secret-invalid',
      `${path} is not a keypair file: its public key does not match its secret key`,
      { fields: { path } },
    )
  }
  return key
}

function readNumbers(text: string): Uint8Array | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isByte = (item: unknown) => Number.isInteger(item) && (item as number) >= 0 && (item as number) <= 255
    return Array.isArray(value) && value.every(isByte) ? Uint8Array.from(value as number[]) : undefined
  } catch {
    return undefined
  }
}
