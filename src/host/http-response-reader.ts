/** What the head of an answer says, as far as anybody here needs it. */
export type ResponseHead = {
  readonly status: number
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  readonly retryAfter: string | undefined
  /** Undefined when the length is not told in advance. */
  readonly bodyBytes: number | undefined
  /** The connection can carry another call after this answer. */
  readonly keepsAlive: boolean
  /** How long the server says it keeps an idle connection. */
  readonly idleHintMs: number | undefined
}

export type ResponseSink = {
  onHead(head: ResponseHead): void
  /** The bytes are a view of a buffer that is used again: copy what is kept. */
  onBody(bytes: Buffer): void
}

/** `surplus`: the answer is whole and more bytes followed it, which nobody asked for. */
export type ReadResult = 'more' | 'done' | 'surplus' | 'fault'

export type ResponseReaderOptions = { readonly headBytesMax?: number; readonly bodyBytesMax?: number }

const DEFAULTS = { headBytesMax: 16 * 1024, bodyBytesMax: 4 * 1024 * 1024 * 1024 }
const FIELDS_MAX = 100
/** Interim answers (1xx) before the one that counts. */
const INTERIM_MAX = 8
/** A chunk's size with its extensions; the size alone has at most 13 hex digits. */
const CHUNK_LINE_BYTES_MAX = 256
const CR = 0x0d
const LF = 0x0a
const HEAD_END = Buffer.from('\r\n\r\n')

/** RFC 9112 section 4; nothing is forgiven: a line ends in CR LF, a name is a token, a value has no control characters. */
const STATUS_LINE = /HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/y
const FIELD_LINE = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)\r\n/y
const CHUNK_LINE = /^([0-9a-fA-F]{1,13})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/

type State = 'head' | 'length' | 'until-close' | 'chunk-line' | 'chunk-data' | 'chunk-end' | 'trailers' | 'over'

/** Reads one HTTP/1.1 answer to a POST after the other from bytes in pieces of any size. */
export class ResponseReader {
  readonly #headBytesMax: number
  readonly #bodyBytesMax: number
  #sink: ResponseSink | undefined
  #state: State = 'over'
  /** What has been read of a head, a chunk's line or trailers that are not whole yet. */
  #pending: Buffer | undefined
  #bytesLeft = 0
  #bodyBytes = 0
  #interim = 0
  /** Why the last result was `fault`. */
  fault = ''

  constructor(options: ResponseReaderOptions = {}) {
    this.#headBytesMax = options.headBytesMax ?? DEFAULTS.headBytesMax
    this.#bodyBytesMax = options.bodyBytesMax ?? DEFAULTS.bodyBytesMax
  }

  /** Expects an answer for this sink. */
  begin(sink: ResponseSink): void {
    this.#sink = sink
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
      if (this.#state === 'over') return 'surplus'
      const next = this.#step(bytes, at)
      if (next === 'fault') return 'fault'
      if (next === 'wait') {
        // The given buffer is used again by whoever reads; `concat` above made one of our own already.
        this.#pending = bytes === chunk ? Buffer.from(bytes.subarray(at)) : bytes.subarray(at)
        return 'more'
      }
      at = next
    }
    return this.#state === 'over' ? 'done' : 'more'
  }

  /** The connection ended: the last word only for an answer whose length is told by that. */
  end(): 'done' | 'fault' {
    if (this.#state !== 'until-close') return this.#fail('the answer was cut off')
    this.#state = 'over'
    return 'done'
  }

  /** Moves on from `at` and answers the new position. */
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
      case 'over':
        return at
    }
  }

  #readHead(bytes: Buffer, at: number): number | 'wait' | 'fault' {
    const end = bytes.indexOf(HEAD_END, at)
    const headBytes = (end === -1 ? bytes.length : end) - at
    if (headBytes > this.#headBytesMax) return this.#fail('the head is too large')
    // A first byte that is wrong already is not worth waiting for the rest.
    if (bytes[at] !== 0x48) return this.#fail('not HTTP')
    if (end === -1) return 'wait'
    const head = this.#parseHead(bytes.toString('latin1', at, end + 2))
    if (head === 'fault') return 'fault'
    if (head !== 'interim') this.#sink?.onHead(head)
    return end + HEAD_END.length
  }

  #parseHead(text: string): ResponseHead | 'interim' | 'fault' {
    STATUS_LINE.lastIndex = 0
    const line = STATUS_LINE.exec(text)
    if (line === null) return this.#fail('bad status line')
    const status = Number(line[2])
    const fields = readFields(text, STATUS_LINE.lastIndex)
    if (typeof fields === 'string') return this.#fail(fields)
    if (status < 200) {
      this.#interim += 1
      if (status === 101 || this.#interim > INTERIM_MAX) return this.#fail('unexpected interim answer')
      return 'interim'
    }
    return this.#frame(status, line[1] === '1', fields)
  }

  /** RFC 9112 section 6.3, without its tolerance: two ways to tell the length are a fault. */
  #frame(status: number, isHttp11: boolean, fields: Fields): ResponseHead | 'fault' {
    const { contentLength, transferEncoding, connection } = fields
    let keepsAlive = isHttp11 ? !hasWord(connection, 'close') : hasWord(connection, 'keep-alive')
    let bodyBytes: number | undefined
    if (transferEncoding !== undefined) {
      if (contentLength !== undefined) return this.#fail('both Content-Length and Transfer-Encoding')
      if (!isHttp11 || transferEncoding.toLowerCase() !== 'chunked') return this.#fail('unknown Transfer-Encoding')
    }
    if (contentLength !== undefined) {
      if (!/^\d{1,15}$/.test(contentLength)) return this.#fail('bad Content-Length')
      bodyBytes = Number(contentLength)
      if (bodyBytes > this.#bodyBytesMax) return this.#fail('the answer is too large')
    }
    if (status === 204 || status === 304) {
      // Has no body whatever its fields say; servers that disagree exist, so the connection is not trusted further.
      bodyBytes = 0
      keepsAlive &&= contentLength === undefined && transferEncoding === undefined
      this.#state = 'over'
    } else if (transferEncoding !== undefined) {
      this.#state = 'chunk-line'
    } else if (bodyBytes === undefined) {
      this.#state = 'until-close'
      this.#bytesLeft = Number.POSITIVE_INFINITY
      keepsAlive = false
    } else {
      this.#state = bodyBytes === 0 ? 'over' : 'length'
      this.#bytesLeft = bodyBytes
    }
    return {
      status,
      contentType: fields.contentType,
      contentEncoding: fields.contentEncoding,
      retryAfter: fields.retryAfter,
      bodyBytes,
      keepsAlive,
      idleHintMs: idleHint(fields.keepAlive),
    }
  }

  #readBody(bytes: Buffer, at: number): number | 'fault' {
    const end = Math.min(bytes.length, at + this.#bytesLeft)
    this.#bytesLeft -= end - at
    this.#bodyBytes += end - at
    if (this.#bodyBytes > this.#bodyBytesMax) return this.#fail('the answer is too large')
    if (this.#bytesLeft === 0) this.#state = this.#state === 'length' ? 'over' : 'chunk-end'
    this.#sink?.onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
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

  /** Trailers are checked like a head and dropped. */
  #readTrailers(bytes: Buffer, at: number): number | 'wait' | 'fault' {
    if (bytes[at] === CR) {
      if (at + 1 >= bytes.length) return 'wait'
      if (bytes[at + 1] !== LF) return this.#fail('bad trailers')
      this.#state = 'over'
      return at + 2
    }
    const end = bytes.indexOf(HEAD_END, at)
    if ((end === -1 ? bytes.length : end) - at > this.#headBytesMax) return this.#fail('the trailers are too large')
    if (end === -1) return 'wait'
    if (typeof readFields(bytes.toString('latin1', at, end + 2), 0) === 'string') return this.#fail('bad trailers')
    this.#state = 'over'
    return end + HEAD_END.length
  }

  #fail(why: string): 'fault' {
    this.#state = 'over'
    this.#pending = undefined
    this.fault = why
    return 'fault'
  }
}

type Fields = {
  contentLength?: string
  transferEncoding?: string
  connection?: string
  keepAlive?: string
  contentType?: string
  contentEncoding?: string
  retryAfter?: string
}

const KNOWN_FIELDS: ReadonlyMap<string, keyof Fields> = new Map([
  ['content-length', 'contentLength'],
  ['transfer-encoding', 'transferEncoding'],
  ['connection', 'connection'],
  ['keep-alive', 'keepAlive'],
  ['content-type', 'contentType'],
  ['content-encoding', 'contentEncoding'],
  ['retry-after', 'retryAfter'],
])
/** By its length alone most fields are known to be of no interest. */
const KNOWN_LENGTHS: ReadonlySet<number> = new Set(Array.from(KNOWN_FIELDS.keys(), (name) => name.length))

/** All field lines up to the end of the text, or what is wrong with them. */
function readFields(text: string, from: number): Fields | string {
  const fields: Fields = {}
  let count = 0
  for (let at = from; at < text.length; at = FIELD_LINE.lastIndex) {
    FIELD_LINE.lastIndex = at
    const match = FIELD_LINE.exec(text)
    if (match === null) return 'bad header'
    count += 1
    if (count > FIELDS_MAX) return 'too many headers'
    if (!KNOWN_LENGTHS.has((match[1] as string).length)) continue
    const name = (match[1] as string).toLowerCase()
    const known = KNOWN_FIELDS.get(name)
    if (known === undefined) continue
    const value = (match[2] as string).trimEnd()
    if (fields[known] === undefined) fields[known] = value
    else if (known === 'contentLength' || known === 'transferEncoding') return `two ${name} headers`
    else if (known === 'connection') fields.connection = `${fields.connection},${value}`
  }
  return fields
}

function hasWord(list: string | undefined, word: string): boolean {
  if (list === undefined || list === word) return list === word
  return list.split(',').some((one) => one.trim().toLowerCase() === word)
}

function idleHint(keepAlive: string | undefined): number | undefined {
  const match = keepAlive === undefined ? null : /(?:^|[\s,])timeout=(\d{1,6})(?:$|[\s,])/i.exec(keepAlive)
  return match === null ? undefined : Number(match[1]) * 1000
}
