import { HeaderCache } from '../client/header-cache.ts'
import { isLineEnd, nameEnd, printableEnd } from '../field-bytes.ts'
import { isHost } from '../request-headers.ts'

/**
 * The head of a request in the one form that nearly all have. Every other form is left to the complete parser: nothing here is an error. What is
 * accepted here, every correct HTTP/1.1 parser reads in the same way.
 */
export type FastPathHead = {
  readonly target: string
  /** Names and values alternating, as received. */
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
/** Fields that change the framing of the message or the protocol of the connection. */
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

/** Lengths of the names that matter here: most others are excluded without comparing characters. */
const RELEVANT_NAME_LENGTHS: ReadonlySet<number> = new Set(
  ['host', 'content-length', 'connection', ...NEVER_FAST_PATH].map((name) => name.length),
)

/** Whether these first bytes can still become a fast-path head. Other methods are recognised without waiting for the whole head. */
export function mayBeFastPath(bytes: Buffer): boolean {
  const known = Math.min(bytes.length, METHOD.length)
  for (let at = 0; at < known; at++) if (bytes[at] !== METHOD.charCodeAt(at)) return false
  return true
}

/** Parses a head without the empty line at its end; undefined when it is not for the fast path. */
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
    // RFC 9110 section 5, narrowed: no empty name or value, at most one space before the value, none behind, printable ASCII only.
    const isNamed = colon > at && bytes[colon] === COLON
    const isTight = end > from && bytes[from] !== SPACE && bytes[end - 1] !== SPACE
    if (!isNamed || !isTight || !isLineEnd(bytes, end)) return undefined
    const name = text.slice(at, colon)
    const value = text.slice(from, end)
    at = end + 2
    headers.push(name, value)
    if (!RELEVANT_NAME_LENGTHS.has(name.length)) continue
    const lower = name.toLowerCase()
    if (lower === 'host') {
      if (!isHost(value)) return undefined
      hosts += 1
    } else if (lower === 'content-length') {
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

/** A head with the memo that `PostHead` describes; none for the first head of a connection. */
export type MemoizedHead = FastPathHead & { readonly memo: { value: unknown } | undefined }

/** The last head of a connection: one that equals it but for its Content-Length is not parsed again. */
export class FastPathHeadCache {
  /** After a match: where the body begins. */
  bodyAt = 0
  readonly #cache = new HeaderCache<MemoizedHead & { readonly lengthIndex: number }>()

  /** The head at the beginning of these bytes, where it is the cached one. */
  match(bytes: Buffer): MemoizedHead | undefined {
    const cache = this.#cache
    if (!cache.matches(bytes, 0) || cache.length > FAST_PATH_LIMITS.bodyBytesMax) return undefined
    const cached = cache.value
    if (cached === undefined) return undefined
    this.bodyAt = cache.bodyAt
    if (cached.bodyBytes === cache.length) return cached
    const headers = cached.headers.with(cached.lengthIndex, String(cache.length))
    return { ...cached, headers, bodyBytes: cache.length }
  }

  remember(head: FastPathHead, bytes: Buffer, headBytes: number): MemoizedHead {
    const isLength = (name: string, index: number) => index % 2 === 0 && name.toLowerCase() === 'content-length'
    const lengthIndex = head.headers.findIndex(isLength) + 1
    const memoized = { ...head, lengthIndex, memo: { value: undefined } }
    this.#cache.remember(bytes, { from: 0, to: headBytes }, head.bodyBytes, memoized)
    return memoized
  }
}
