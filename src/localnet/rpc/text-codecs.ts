import { Buffer } from 'node:buffer'

export type DecodedText =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly fault: string }

const BASE64_CHARS = /^[A-Za-z0-9+/]*$/

/** Standard base64 with its padding and nothing else; the fault is in the words of the decoder that nodes use. */
export function decodeBase64(text: string): DecodedText {
  const body = text.replace(/={1,2}$/, '')
  if (!BASE64_CHARS.test(body)) {
    const at = [...body].findIndex((char) => !BASE64_CHARS.test(char))
    return {
      ok: false,
      fault: `InvalidByte(${Buffer.byteLength([...body].slice(0, at).join(''))}, ${Buffer.from([...body][at] ?? '')[0] ?? 0})`,
    }
  }
  if (body.length % 4 === 1) return { ok: false, fault: `InvalidLength(${text.length})` }
  if (text.length % 4 !== 0) return { ok: false, fault: 'InvalidPadding' }
  const bytes = Buffer.from(body, 'base64')
  // Bits that the last character has to spare must be zero.
  if (bytes.toString('base64') !== text) {
    return { ok: false, fault: `InvalidLastSymbol(${body.length - 1}, ${body.charCodeAt(body.length - 1)})` }
  }
  return { ok: true, bytes }
}

/** The fault of the base58 decoder that nodes use. */
export function describeBase58Fault(text: string): string {
  const at = [...text].findIndex((char) => !BASE58_CHAR.test(char))
  const char = [...text][at] ?? ''
  const index = Buffer.byteLength([...text].slice(0, at).join(''))
  return char.charCodeAt(0) > 127
    ? `NonAsciiCharacter { index: ${index} }`
    : `InvalidCharacter { character: '${char}', index: ${index} }`
}

const BASE58_CHAR = /^[1-9A-HJ-NP-Za-km-z]$/
