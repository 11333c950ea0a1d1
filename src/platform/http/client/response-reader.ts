import { headEnd, isLineEnd, nameEnd, valueEnd } from '../field-bytes.ts'
import { HeaderCache } from './header-cache.ts'

/** What is used of the head of a response. */
export type ResponseHead = {
  readonly status: number
  /** Undefined when the length is unknown. */
  readonly bodyBytes: number | undefined
  /** The connection can carry another call after this response. */
  readonly keepsAlive: boolean
  /** The timeout of the server's Keep-Alive header. */
  readonly idleHintMs: number | undefined
}

export type ResponseEvents = {
  onHead(head: ResponseHead): void
  /** The bytes are a view of a buffer that is reused: copy what is kept. */
  onBody(bytes: Buffer): void
}

/** `surplus`: the response is complete and unsolicited bytes followed it. */
export type ReadResult = 'more' | 'done' | 'surplus' | 'fault'

export type ResponseReaderOptions = { readonly headBytesMax?: number; readonly bodyBytesMax?: number }

const DEFAULTS = { headBytesMax: 16 * 1024, bodyBytesMax: 4 * 1024 * 1024 * 1024 }
const FIELDS_MAX = 100
/** Interim responses (1xx) before the final one. */
const INTERIM_MAX = 8
/** A chunk's size with its extensions; the size alone has at most 13 hex digits. */
const CHUNK_LINE_BYTES_MAX = 256
const CR = 0x0d
const LF = 0x0a
const TAB = 0x09
const SPACE = 0x20
const COLON = 0x3a
/** Offsets in `HTTP/1.1 200 OK`. */
const MINOR_AT = 7
const STATUS_AT = 9
const PROTOCOL = Buffer.from('HTTP/1.')
const ZERO = 0x30
const ONE = 0x31
const HEAD_END_BYTES = 4

const CHUNK_LINE = /^([0-9a-fA-F]{1,13})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/

type State = 'head' | 'length' | 'until-close' | 'chunk-line' | 'chunk-data' | 'chunk-end' | 'trailers' | 'done'

/** Parses HTTP/1.1 responses to POST requests, one after the other, from chunks of any size. */
export class ResponseReader {
  readonly #headBytesMax: number
  readonly #bodyBytesMax: number
  readonly #events: ResponseEvents
  readonly #cache = new HeaderCache<ResponseHead>()
  #state: State = 'done'
  /** The beginning of a head, a chunk line or trailers that are incomplete. */
  #pending: Buffer | undefined
  #bytesLeft = 0
  #bodyBytes = 0
  #interim = 0
  /** Why the last result was `fault`. */
  fault = ''

  constructor(events: ResponseEvents, options: ResponseReaderOptions = {}) {
    this.#events = events
    this.#headBytesMax = options.headBytesMax ?? DEFAULTS.headBytesMax
    this.#bodyBytesMax = options.bodyBytesMax ?? DEFAULTS.bodyBytesMax
  }

  /** Expects a response. */
  begin(): void {
    this.#state = 'head'
    this.#pending = undefined
    this.#bodyBytes = 0
    this.#interim = 0
  }

  push(chunk: Buffer): ReadResult {
    let bytes = chunk
    if (this.#pending !== undefined) {
      bytes = Buffer.concat([this.#pending, chunk])
      this.#pending = undefined
    }
    let at = 0
    while (at < bytes.length) {
      if (this.#state === 'done') return 'surplus'
      const next = this.#step(bytes, at)
      if (next === 'fault') return 'fault'
      if (next === 'wait') {
        // The caller reuses its buffer; `concat` above has made a copy already.
        this.#pending = bytes === chunk ? Buffer.from(bytes.subarray(at)) : bytes.subarray(at)
        return 'more'
      }
      at = next
    }
    return this.#state === 'done' ? 'done' : 'more'
  }

  /** The connection ended, which completes only a response without a length. */
  end(): 'done' | 'fault' {
    if (this.#state !== 'until-close') return this.#fail('the response is incomplete')
    this.#state = 'done'
    return 'done'
  }

  /** Reads on from `at` and returns the new offset. */
  #step(bytes: Buffer, at: number): number | 'wait' | 'fault' {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes, at)
      case 'length':
      case 'chunk-data':
      case 'until-close':
        return this.#readBody(bytes, at)
      case 'chunk-line':
        return this.#readChunkLine(bytes, at)
      case 'chunk-end':
        return this.#readChunkEnd(bytes, at)
      case 'trailers':
        return this.#readTrailers(bytes, at)
      case 'done':
        return at
    }
  }

  #readHead(bytes: Buffer, at: number): number | 'wait' | 'fault' {
    const cache = this.#cache
    if (cache.matches(bytes, at) && cache.length <= this.#bodyBytesMax) return this.#readCachedHead()
    const end = headEnd(bytes, at)
    const headBytes = (end === -1 ? bytes.length : end) - at
    if (headBytes > this.#headBytesMax) return this.#fail('the head is too large')
    // A wrong first byte is a fault at once: the rest need not come.
    if (bytes[at] !== 0x48) return this.#fail('not HTTP')
    if (end === -1) return 'wait'
    const head = this.#parseHead(bytes, at, end + 2)
    if (head === 'fault') return 'fault'
    if (head === 'interim') return end + HEAD_END_BYTES
    const range = { from: at, to: end + HEAD_END_BYTES }
    if (this.#state === 'length') cache.remember(bytes, range, head.bodyBytes as number, head)
    this.#events.onHead(head)
    return range.to
  }

  /** The head of the previous response, possibly with another length. */
  #readCachedHead(): number {
    const { value, length, bodyAt } = this.#cache
    const cached = value as ResponseHead
    this.#state = 'length'
    this.#bytesLeft = length
    this.#events.onHead(cached.bodyBytes === length ? cached : { ...cached, bodyBytes: length })
    return bodyAt
  }

  #parseHead(bytes: Buffer, from: number, to: number): ResponseHead | 'interim' | 'fault' {
    const fieldsFrom = statusLineEnd(bytes, from, to)
    if (fieldsFrom === -1) return this.#fail('bad status line')
    const status = statusOf(bytes, from)
    const fields = readFields(bytes, fieldsFrom, to)
    if (typeof fields === 'string') return this.#fail(fields)
    if (status < 200) {
      this.#interim += 1
      if (status === 101 || this.#interim > INTERIM_MAX) return this.#fail('unexpected interim response')
      return 'interim'
    }
    return this.#frame(status, bytes[from + MINOR_AT] === ONE, fields)
  }

  /** RFC 9112 section 6.3, without its tolerance: both Content-Length and Transfer-Encoding are a fault. */
  #frame(status: number, isHttp11: boolean, fields: Fields): ResponseHead | 'fault' {
    const { contentLength, transferEncoding, connection } = fields
    let keepsAlive = isHttp11 ? !hasToken(connection, 'close') : hasToken(connection, 'keep-alive')
    let bodyBytes: number | undefined
    if (transferEncoding !== undefined) {
      if (contentLength !== undefined) return this.#fail('both Content-Length and Transfer-Encoding')
      if (!isHttp11 || transferEncoding.toLowerCase() !== 'chunked') return this.#fail('unknown Transfer-Encoding')
    }
    if (contentLength !== undefined) {
      if (!/^\d{1,15}$/.test(contentLength)) return this.#fail('bad Content-Length')
      bodyBytes = Number(contentLength)
      if (bodyBytes > this.#bodyBytesMax) return this.#fail('the response is too large')
    }
    if (status === 204 || status === 304) {
      // Has no body, whatever its fields state. Some servers send one, so the connection is not reused then.
      bodyBytes = 0
      keepsAlive &&= contentLength === undefined && transferEncoding === undefined
      this.#state = 'done'
    } else if (transferEncoding !== undefined) {
      this.#state = 'chunk-line'
    } else if (bodyBytes === undefined) {
      this.#state = 'until-close'
      this.#bytesLeft = Number.POSITIVE_INFINITY
      keepsAlive = false
    } else {
      this.#state = bodyBytes === 0 ? 'done' : 'length'
      this.#bytesLeft = bodyBytes
    }
    return {
      status,
      bodyBytes,
      keepsAlive,
      idleHintMs: idleHint(fields.keepAlive),
    }
  }

  #readBody(bytes: Buffer, at: number): number | 'fault' {
    const end = Math.min(bytes.length, at + this.#bytesLeft)
    this.#bytesLeft -= end - at
    this.#bodyBytes += end - at
    if (this.#bodyBytes > this.#bodyBytesMax) return this.#fail('the response is too large')
    if (this.#bytesLeft === 0) this.#state = this.#state === 'length' ? 'done' : 'chunk-end'
    this.#events.onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    return end
  }

  #readChunkLine(bytes: Buffer, at: number): number | 'wait' | 'fault' {
    const end = bytes.indexOf(LF, at)
    if ((end === -1 ? bytes.length : end) - at > CHUNK_LINE_BYTES_MAX) return this.#fail('bad chunk')
    if (end === -1) return 'wait'
    const match = bytes[end - 1] === CR ? CHUNK_LINE.exec(bytes.toString('latin1', at, end - 1)) : null
    if (match === null) return this.#fail('bad chunk')
    this.#bytesLeft = Number.parseInt(match[1] as string, 16)
    this.#state = this.#bytesLeft === 0 ? 'trailers' : 'chunk-data'
    return end + 1
  }

  #readChunkEnd(bytes: Buffer, at: number): number | 'wait' | 'fault' {
    if (bytes[at] !== CR) return this.#fail('bad chunk')
    if (at + 1 >= bytes.length) return 'wait'
    if (bytes[at + 1] !== LF) return this.#fail('bad chunk')
    this.#state = 'chunk-line'
    return at + 2
  }

  /** Trailers are validated like a head and dropped. */
  #readTrailers(bytes: Buffer, at: number): number | 'wait' | 'fault' {
    if (bytes[at] === CR) {
      if (at + 1 >= bytes.length) return 'wait'
      if (bytes[at + 1] !== LF) return this.#fail('bad trailers')
      this.#state = 'done'
      return at + 2
    }
    const end = headEnd(bytes, at)
    if ((end === -1 ? bytes.length : end) - at > this.#headBytesMax) return this.#fail('the trailers are too large')
    if (end === -1) return 'wait'
    if (typeof readFields(bytes, at, end + 2) === 'string') return this.#fail('bad trailers')
    this.#state = 'done'
    return end + HEAD_END_BYTES
  }

  #fail(reason: string): 'fault' {
    this.#state = 'done'
    this.#pending = undefined
    this.fault = reason
    return 'fault'
  }
}

/** The fields that determine framing and reuse of the connection. */
class Fields {
  contentLength: string | undefined
  transferEncoding: string | undefined
  connection: string | undefined
  keepAlive: string | undefined
}

const CONTENT_LENGTH = Buffer.from('content-length')
const TRANSFER_ENCODING = Buffer.from('transfer-encoding')
const CONNECTION = Buffer.from('connection')
const KEEP_ALIVE = Buffer.from('keep-alive')

/** The known field with this name. The length is compared first: it rules out most fields. */
function knownField(bytes: Buffer, from: number, to: number): keyof Fields | undefined {
  switch (to - from) {
    case CONNECTION.length:
      if (isNamed(bytes, from, CONNECTION)) return 'connection'
      return isNamed(bytes, from, KEEP_ALIVE) ? 'keepAlive' : undefined
    case CONTENT_LENGTH.length:
      return isNamed(bytes, from, CONTENT_LENGTH) ? 'contentLength' : undefined
    case TRANSFER_ENCODING.length:
      return isNamed(bytes, from, TRANSFER_ENCODING) ? 'transferEncoding' : undefined
    default:
      return undefined
  }
}

/** Ignores case: of the bytes that a field name may have, the bit 0x20 only distinguishes letters here. */
function isNamed(bytes: Buffer, from: number, lower: Buffer): boolean {
  for (let at = 0; at < lower.length; at++) if (((bytes[from + at] as number) | 0x20) !== lower[at]) return false
  return true
}

/** The end of the status line `HTTP/1.1 200 OK`; -1 when it is malformed (RFC 9112 section 4). */
function statusLineEnd(bytes: Buffer, from: number, to: number): number {
  for (let at = 0; at < MINOR_AT; at++) if (bytes[from + at] !== PROTOCOL[at]) return -1
  const minor = bytes[from + MINOR_AT]
  if ((minor !== ZERO && minor !== ONE) || bytes[from + STATUS_AT - 1] !== SPACE) return -1
  const status = statusOf(bytes, from)
  if (!(status >= 100 && status < 600)) return -1
  const reasonAt = from + STATUS_AT + 3
  const end = bytes[reasonAt] === SPACE ? valueEnd(bytes, reasonAt, to) : reasonAt
  return isLineEnd(bytes, end) ? end + 2 : -1
}

/** NaN when it is not three digits. */
function statusOf(bytes: Buffer, from: number): number {
  let status = 0
  for (let at = from + STATUS_AT; at < from + STATUS_AT + 3; at++) {
    const digit = (bytes[at] as number) - ZERO
    if (!(digit >= 0 && digit <= 9)) return Number.NaN
    status = status * 10 + digit
  }
  return status
}

/**
 * The known fields of all field lines, or the reason why they are malformed. RFC 9112 section 5 without its tolerance: a line ends in CR LF, a name
 * is a token, a value has no control characters.
 */
function readFields(bytes: Buffer, from: number, to: number): Fields | string {
  const fields = new Fields()
  let count = 0
  for (let at = from; at < to; ) {
    const colon = nameEnd(bytes, at, to)
    if (colon === at || bytes[colon] !== COLON) return 'bad header'
    let valueFrom = colon + 1
    while (bytes[valueFrom] === SPACE || bytes[valueFrom] === TAB) valueFrom += 1
    const valueTo = valueEnd(bytes, valueFrom, to)
    if (!isLineEnd(bytes, valueTo)) return 'bad header'
    count += 1
    if (count > FIELDS_MAX) return 'too many headers'
    const known = knownField(bytes, at, colon)
    if (known !== undefined) {
      const value = bytes.toString('latin1', valueFrom, valueTo).trimEnd()
      if (fields[known] === undefined) fields[known] = value
      else if (known === 'contentLength') return 'two content-length headers'
      else if (known === 'transferEncoding') return 'two transfer-encoding headers'
      else if (known === 'connection') fields.connection = `${fields.connection},${value}`
    }
    at = valueTo + 2
  }
  return fields
}

function hasToken(list: string | undefined, token: string): boolean {
  if (list === undefined || list === token) return list === token
  if (list.length <= token.length && !list.includes(',')) return list.toLowerCase() === token
  return list.split(',').some((one) => one.trim().toLowerCase() === token)
}

function idleHint(keepAlive: string | undefined): number | undefined {
  const match = keepAlive === undefined ? null : /(?:^|[\s,])timeout=(\d{1,6})(?:$|[\s,])/i.exec(keepAlive)
  return match === null ? undefined : Number(match[1]) * 1000
}
