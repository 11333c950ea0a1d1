import { Buffer } from 'node:buffer'

export type DecodedText =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly fault: string }

const NOT_BASE64 = /[^A-Za-z0-9+/]/u
const NOT_BASE58 = /[^1-9A-HJ-NP-Za-km-z]/u

/** Standard base64 with padding; the error message is that of the decoder in Agave. */
export function decodeBase64(text: string): DecodedText {
  const body = text.replace(/={1,2}$/, '')
  const stranger = findInvalidChar(body, NOT_BASE64)
  if (stranger) return { ok: false, fault: `InvalidByte(${stranger.index}, ${Buffer.from(stranger.char)[0] ?? 0})` }
  if (body.length % 4 === 1) return { ok: false, fault: `InvalidLength(${text.length})` }
  if (text.length % 4 !== 0) return { ok: false, fault: 'InvalidPadding' }
  const bytes = Buffer.from(body, 'base64')
  // The unused bits of the last character must be zero.
  if (bytes.toString('base64') !== text) {
    return { ok: false, fault: `InvalidLastSymbol(${body.length - 1}, ${body.charCodeAt(body.length - 1)})` }
  }
  return { ok: true, bytes }
}

/** The error message of Agave's base58 decoder for invalid text. */
export function describeBase58Fault(text: string): string {
  const { char, index } = findInvalidChar(text, NOT_BASE58) ?? { char: '', index: text.length }
  return char.charCodeAt(0) > 127
    ? `NonAsciiCharacter { index: ${index} }`
    : `InvalidCharacter { character: '${char}', index: ${index} }`
}

/** The first invalid character and its byte offset. */
function findInvalidChar(text: string, pattern: RegExp): { readonly char: string; readonly index: number } | undefined {
  const match = pattern.exec(text)
  return match ? { char: match[0], index: Buffer.byteLength(text.slice(0, match.index)) } : undefined
}
