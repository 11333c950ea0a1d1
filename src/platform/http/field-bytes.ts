/**
 * Classes of bytes in a header field line of HTTP/1.1 (RFC 9110 section 5). A table and a loop, because this runs twice for every call and a regular
 * expression costs several times as much.
 */
const NAME = 1
const VALUE = 2
const PRINTABLE = 4

const KINDS = Uint8Array.from({ length: 256 }, (_nothing, code) => {
  const isPrintable = code >= 0x20 && code <= 0x7e
  const isValue = isPrintable || code === 0x09 || code >= 0x80
  const isName = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(code))
  return (isName ? NAME : 0) | (isValue ? VALUE : 0) | (isPrintable ? PRINTABLE : 0)
})

const CR = 0x0d
const LF = 0x0a

/** The end of the field name that begins at `from`, at most `to`. */
export function nameEnd(bytes: Uint8Array, from: number, to: number): number {
  return endOf(bytes, from, to, NAME)
}

/** The end of the field value that begins at `from`: visible characters, blanks, and bytes beyond ASCII. */
export function valueEnd(bytes: Uint8Array, from: number, to: number): number {
  return endOf(bytes, from, to, VALUE)
}

/** The same for spaces and visible ASCII only. */
export function printableEnd(bytes: Uint8Array, from: number, to: number): number {
  return endOf(bytes, from, to, PRINTABLE)
}

/** Where the CRLF CRLF at the end of a head begins; -1 when there is none. */
export function headEnd(bytes: Uint8Array, from: number): number {
  // Four consecutive bytes are CR or LF, so checking every fourth byte cannot miss them.
  for (let at = from + 3; at < bytes.length; ) {
    const byte = bytes[at]
    if (byte === LF && bytes[at - 1] === CR && bytes[at - 2] === LF && bytes[at - 3] === CR) return at - 3
    at += byte === LF || byte === CR ? 1 : 4
  }
  return -1
}

export function isLineEnd(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === CR && bytes[at + 1] === LF
}

function endOf(bytes: Uint8Array, from: number, to: number, kind: number): number {
  let at = from
  while (at < to && ((KINDS[bytes[at] as number] as number) & kind) !== 0) at += 1
  return at
}
