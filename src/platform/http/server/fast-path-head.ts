import { isLineEnd, nameEnd, printableEnd } from '../field-bytes.ts'

/**
 * The head of a request in the one plain form that nearly all have. Whatever is not obviously that is for the complete parser: nothing here is
 * an error, and nothing is forgiven. What passes, every correct HTTP/1.1 parser reads in the same way.
 */
export type FastPathHead = {
  readonly target: string
  /** Names and values in turn, as they came. */
  readonly headers: string[]
  readonly bodyBytes: number
}

export const FAST_PATH_LIMITS = { headBytesMax: 4096, fieldsMax: 32, bodyBytesMax: 64 * 1024 }

const SPACE = 0x20
const COLON = 0x3a
const METHOD = 'POST '
const PROTOCOL = ' HTTP/1.1'
/** The root, with or without a query of the characters that RFC 3986 allows in one. */
const TARGET = /^\/(?:\?[\w\-.~%!$&'()*+,;=:@/?]*)?$/
const LENGTH = /^(?:0|[1-9]\d{0,6})$/
/** Fields that change how the message is framed or what the connection becomes. */
const NEVER_FAST_PATH: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'te',
  'trailer',
  'expect',
  'upgrade',
  'keep-alive',
  'proxy-connection',
  'http2-settings',
])

/** By its length alone most fields are known not to matter here, and their letters need no look. */
const LENGTHS_THAT_MATTER: ReadonlySet<number> = new Set(
  ['host', 'content-length', 'connection', ...NEVER_FAST_PATH].map((name) => name.length),
)

/** Whether these first bytes can still become a plain head; tells other methods at once, without waiting for their heads. */
export function mayBeFastPath(bytes: Buffer): boolean {
  const known = Math.min(bytes.length, METHOD.length)
  for (let at = 0; at < known; at++) if (bytes[at] !== METHOD.charCodeAt(at)) return false
  return true
}

/** Reads a head, the empty line at its end left out; undefined when it is not plain. */
export function parseFastPathHead(bytes: Buffer): FastPathHead | undefined {
  const text = bytes.toString('latin1')
  const lineEnd = text.indexOf('\r\n')
  const targetEnd = lineEnd - PROTOCOL.length
  if (!text.startsWith(METHOD) || !text.startsWith(PROTOCOL, targetEnd)) return undefined
  const target = text.slice(METHOD.length, targetEnd)
  if (target !== '/' && !TARGET.test(target)) return undefined
  const headers: string[] = []
  let hosts = 0
  let connections = 0
  let lengths = 0
  let bodyBytes = 0
  for (let at = lineEnd + 2; at < text.length; ) {
    const colon = nameEnd(bytes, at, bytes.length)
    const from = bytes[colon + 1] === SPACE ? colon + 2 : colon + 1
    const end = printableEnd(bytes, from, bytes.length)
    // RFC 9110 section 5, narrowed: no empty name or value, one space at most before the value, none behind, printable ASCII throughout.
    const isNamed = colon > at && bytes[colon] === COLON
    const isTight = end > from && bytes[from] !== SPACE && bytes[end - 1] !== SPACE
    if (!isNamed || !isTight || !isLineEnd(bytes, end)) return undefined
    const name = text.slice(at, colon)
    const value = text.slice(from, end)
    at = end + 2
    headers.push(name, value)
    if (!LENGTHS_THAT_MATTER.has(name.length)) continue
    const lower = name.toLowerCase()
    if (lower === 'host') hosts += 1
    else if (lower === 'content-length') {
      if (!LENGTH.test(value)) return undefined
      lengths += 1
      bodyBytes = Number(value)
    } else if (lower === 'connection') {
      if (value.toLowerCase() !== 'keep-alive') return undefined
      connections += 1
    } else if (NEVER_FAST_PATH.has(lower)) return undefined
  }
  if (hosts !== 1 || lengths !== 1 || connections > 1) return undefined
  if (bodyBytes > FAST_PATH_LIMITS.bodyBytesMax || headers.length > 2 * FAST_PATH_LIMITS.fieldsMax) return undefined
  return { target, headers, bodyBytes }
}
