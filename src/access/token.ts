import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Random } from '../core/random.ts'

/**
 * A token is `slc_`, 32 random base62 characters (190.5 bits) and six checksum characters. The checksum is not secret: it distinguishes a typo from
 * an unknown token, and lets a scanner recognise a leaked token offline.
 */
const TOKEN_PREFIX = 'slc_'
/** Tokens of administrators have the same form. */
const ADMIN_TOKEN_PREFIX = 'sla_'
export const TOKEN_LENGTH = 42

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const BODY_LENGTH = 32
const CHECKSUM_LENGTH = 6
const CHECKSUM_AT = TOKEN_PREFIX.length + BODY_LENGTH
/** The largest multiple of 62 that fits a byte: larger bytes are discarded, so that all characters are equally likely. */
const FAIR_BYTES = 248

export type NewToken = {
  /** The token itself, to be shown once and never stored. */
  readonly secret: string
  readonly sha256: string
  readonly last4: string
}

export function createToken(random: Random): NewToken {
  return createTokenOf(TOKEN_PREFIX, random)
}

/** A token of an administrator, for the admin API only. */
export function createAdminToken(random: Random): NewToken {
  return createTokenOf(ADMIN_TOKEN_PREFIX, random)
}

function createTokenOf(prefix: string, random: Random): NewToken {
  const body = prefix + createSecretText(random, BODY_LENGTH)
  const secret = body + checksumOf(body)
  return { secret, sha256: hashToken(secret), last4: secret.slice(-4) }
}

/** Random base62 text, every character equally likely. */
export function createSecretText(random: Random, length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of random.bytes(length - text.length + 8)) {
      if (byte < FAIR_BYTES && text.length < length) text += ALPHABET[byte % 62]
    }
  }
  return text
}

/**
 * Whether the text has the format and checksum of a token, not whether such a token was issued. All texts of a token's length cost the same work:
 * the checksum is computed even when the format is wrong.
 */
export function isTokenText(text: string): boolean {
  return hasFormAndChecksum(text, TOKEN_FORM)
}

/** The same for the token of an administrator. */
export function isAdminTokenText(text: string): boolean {
  return hasFormAndChecksum(text, ADMIN_TOKEN_FORM)
}

function hasFormAndChecksum(text: string, form: RegExp): boolean {
  if (text.length !== TOKEN_LENGTH) return false
  const hasForm = form.test(text)
  const hasChecksum = checksumOf(text.slice(0, CHECKSUM_AT)) === text.slice(CHECKSUM_AT)
  return hasForm && hasChecksum
}

const TOKEN_FORM = /^slc_[0-9A-Za-z]{38}$/
const ADMIN_TOKEN_FORM = /^sla_[0-9A-Za-z]{38}$/

/** SHA-256 of the token in hex: the only form in which it is stored. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex')
}

/** The display form of a token. */
export function displayToken(last4: string): string {
  return `${TOKEN_PREFIX}…${last4}`
}

export function displayAdminToken(last4: string): string {
  return `${ADMIN_TOKEN_PREFIX}…${last4}`
}

/** CRC32 (zlib's) of prefix and body as a base62 number, most significant digit first, padded to six. */
function checksumOf(prefixAndBody: string): string {
  let rest = crc32(prefixAndBody)
  let text = ''
  for (let digit = 0; digit < CHECKSUM_LENGTH; digit++) {
    text = ALPHABET.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return text
}
