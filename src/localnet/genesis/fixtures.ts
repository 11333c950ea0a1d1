import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { ServiceError } from '../../core/error.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { BPF_LOADER } from '../chain/addresses.ts'
import type { Account } from '../chain/model.ts'
import { minimumBalance, RENT_EXEMPT_EPOCH } from '../engine/sysvars.ts'
import { parseKeyFile } from './key-files.ts'

/** An account holds at most 10 MiB (MAX_PERMITTED_DATA_LENGTH). */
const DATA_BYTES_MAX = 10 * 1024 * 1024
const FILES_MAX = 10_000
/** Base64 of the largest account, and space for the rest of the file. */
const FILE_BYTES_MAX = 15 * 1024 * 1024

/**
 * Accounts of the genesis: JSON files as `solana-test-validator --account-dir` accepts and `solana account --output json`
 * writes, and programs as `.so` files. A program's address is its file name, or the key of `NAME-keypair.json` beside it.
 */
export function readFixtures(dir: string): [string, Account][] {
  const names = listFiles(dir)
  const fixtures: [string, Account][] = []
  for (const name of names) {
    const path = join(dir, name)
    if (name.endsWith('.so')) fixtures.push(readProgram(dir, name))
    else if (name.endsWith('.json') && !name.endsWith('-keypair.json'))
      fixtures.push(parseAccountFile(read(path).toString('utf8'), path))
  }
  return fixtures
}

/** One account file: `{"pubkey": text, "account": {lamports, data, owner, executable, rentEpoch}}`. */
export function parseAccountFile(text: string, path: string): [string, Account] {
  const file = parseJson(text, path) as { pubkey?: unknown; account?: Record<string, unknown> } | null
  const fail = (what: string) => invalid(path, what)
  if (typeof file?.pubkey !== 'string' || !isAddress(file.pubkey)) throw fail('"pubkey" is no address')
  const { account } = file
  if (typeof account !== 'object' || account === null) throw fail('"account" is missing')
  const { lamports, owner, executable, data, rentEpoch = RENT_EXEMPT_EPOCH } = account
  if (!isU64(lamports)) throw fail('"lamports" is no u64')
  if (!isU64(rentEpoch)) throw fail('"rentEpoch" is no u64')
  if (typeof owner !== 'string' || !isAddress(owner)) throw fail('"owner" is no address')
  const bytes = decodeData(data)
  if (!bytes) throw fail('"data" is not [text, "base64"], [text, "base58"], [text, "base64+zstd"] or base58 text')
  if (bytes.length > DATA_BYTES_MAX) throw fail('"data" is longer than an account may be')
  return [file.pubkey, { lamports, owner, data: bytes, executable: executable === true, rentEpoch }]
}

function readProgram(dir: string, name: string): [string, Account] {
  const stem = basename(name, '.so')
  const keypairPath = join(dir, `${stem}-keypair.json`)
  const address = isAddress(stem)
    ? stem
    : encodeBase58(parseKeyFile(read(keypairPath).toString('utf8'), keypairPath).publicKey)
  const data = new Uint8Array(read(join(dir, name)))
  return [
    address,
    { lamports: minimumBalance(data.length), owner: BPF_LOADER, data, executable: true, rentEpoch: RENT_EXEMPT_EPOCH },
  ]
}

function decodeData(data: unknown): Uint8Array | undefined {
  const [text, encoding] = typeof data === 'string' ? [data, 'base58'] : Array.isArray(data) ? (data as unknown[]) : []
  if (typeof text !== 'string') return undefined
  try {
    if (encoding === 'base58') return decodeBase58(text)
    if (encoding === 'base64') return new Uint8Array(Buffer.from(text, 'base64'))
    if (encoding !== 'base64+zstd') return undefined
    return new Uint8Array(zstdDecompressSync(Buffer.from(text, 'base64'), { maxOutputLength: DATA_BYTES_MAX }))
  } catch {
    return undefined
  }
}

function isU64(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= 0n && value < 2n ** 64n
}

const U64_MEMBERS = ['lamports', 'rentEpoch']

/** These members may exceed 2^53, so they are read from their source text. */
function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text, (key, value: unknown, context?: { source?: string }) =>
      U64_MEMBERS.includes(key) && typeof value === 'number' && context?.source !== undefined
        ? toBigInt(context.source)
        : value,
    )
  } catch (cause) {
    throw invalid(path, 'it is not JSON', cause)
  }
}

function toBigInt(source: string): bigint | undefined {
  return /^\d{1,20}$/.test(source) ? BigInt(source) : undefined
}

function isAddress(text: string): boolean {
  try {
    return text.length <= 44 && decodeBase58(text).length === 32
  } catch {
    return false
  }
}

function listFiles(dir: string): string[] {
  try {
    const names = readdirSync(dir).sort()
    if (names.length > FILES_MAX) throw new Error(`it holds more than ${FILES_MAX} files`)
    return names
  } catch (cause) {
    throw invalid(dir, cause instanceof Error ? cause.message : 'it cannot be read', cause)
  }
}

function read(path: string): Buffer {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (cause) {
    throw invalid(path, 'it cannot be read', cause)
  }
  if (bytes.length > FILE_BYTES_MAX) throw invalid(path, 'it is longer than an account file can be')
  return bytes
}

function invalid(path: string, what: string, cause?: unknown): ServiceError {
  return new ServiceError('invalid-value', `account file ${path}: ${what}`, { fields: { path }, cause })
}
