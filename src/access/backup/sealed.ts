import { createCipheriv, createDecipheriv, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'

/**
 * Secrets of a backup, encrypted: the key is derived from a passphrase or key file with scrypt, the text is encrypted with AES-256-GCM. Every field but
 * `tag` and `data` is authenticated too, so none of them can be changed. Bytes are base64.
 */
export type Sealed = {
  readonly v: 1
  readonly kdf: 'scrypt'
  readonly n: number
  readonly r: number
  readonly p: number
  readonly salt: string
  readonly cipher: 'aes-256-gcm'
  readonly nonce: string
  readonly tag: string
  readonly data: string
}

/** 128 MiB and about half a second: the cost of one guess. RFC 7914 has the meaning of n, r and p. */
const COST = { n: 2 ** 17, r: 8, p: 1 } as const
/** A file from elsewhere may ask for no more than this. */
const MEMORY_BYTES_MAX = 256 * 2 ** 20
const P_MAX = 4
const SALT_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32

export async function seal(
  plain: string,
  secret: Uint8Array,
  { random, cost = COST }: { readonly random: Random; readonly cost?: Cost },
): Promise<Sealed> {
  const { n, r, p } = cost
  const salt = random.bytes(SALT_BYTES)
  const nonce = random.bytes(NONCE_BYTES)
  const head = {
    v: 1,
    kdf: 'scrypt',
    n,
    r,
    p,
    salt: base64(salt),
    cipher: 'aes-256-gcm',
    nonce: base64(nonce),
  } as const
  const cipher = createCipheriv('aes-256-gcm', await derive(secret, salt, head), nonce)
  cipher.setAAD(Buffer.from(JSON.stringify(head)))
  const data = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
  return { ...head, tag: base64(cipher.getAuthTag()), data: base64(data) }
}

/** The text, or undefined when the secret is not the one it was sealed with or a byte was changed. Throws for a version that this Sluice does not know. */
export async function unseal(given: unknown, secret: Uint8Array): Promise<string | undefined> {
  const sealed = parseSealed(given)
  const { tag, data, ...head } = sealed
  const decipher = createDecipheriv(
    'aes-256-gcm',
    await derive(secret, bytesOf(sealed.salt), sealed),
    bytesOf(sealed.nonce),
    { authTagLength: TAG_BYTES },
  )
  decipher.setAAD(Buffer.from(JSON.stringify(head)))
  decipher.setAuthTag(bytesOf(tag))
  try {
    return Buffer.concat([decipher.update(bytesOf(data)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

type Cost = { readonly n: number; readonly r: number; readonly p: number }

function derive(secret: Uint8Array, salt: Uint8Array, { n, r, p }: Cost): Promise<Buffer> {
  // Node counts a little more than 128 · n · r.
  const options = { N: n, r, p, maxmem: 2 * MEMORY_BYTES_MAX }
  return (promisify(scrypt) as (...args: unknown[]) => Promise<Buffer>)(secret, salt, KEY_BYTES, options)
}

/** The fields in the order in which `seal` writes them: the order is part of what is authenticated. */
function parseSealed(given: unknown): Sealed {
  const { v, kdf, n, r, p, salt, cipher, nonce, tag, data } = (given ?? {}) as Partial<Record<keyof Sealed, unknown>>
  if (v !== 1 || kdf !== 'scrypt' || cipher !== 'aes-256-gcm') {
    throw new ServiceError(
      'store-newer',
      'the keys of the backup are encrypted in a way that this Sluice does not know',
      {
        fix: 'Restore it with the Sluice that made it, or without its keys: --without-keys',
      },
    )
  }
  const isCost = isCount(n) && isCount(r) && isCount(p) && Number.isInteger(Math.log2(n)) && n > 1 && p <= P_MAX
  const isText = [salt, nonce, tag, data].every((text) => typeof text === 'string')
  if (!isCost || 128 * n * r > MEMORY_BYTES_MAX || !isText) throw invalid()
  const sealed = { v, kdf, n, r, p, salt, cipher, nonce, tag, data } as Sealed
  if (bytesOf(sealed.nonce).length !== NONCE_BYTES || bytesOf(sealed.tag).length !== TAG_BYTES) throw invalid()
  return sealed
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

function invalid(): ServiceError {
  return new ServiceError('store-corrupt', 'the encrypted keys of the backup are damaged', {
    fix: 'Nothing was changed. Use another backup, or restore without its keys: --without-keys',
  })
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'base64')
}
