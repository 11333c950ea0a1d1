import type { Socket } from 'node:net'
import { type ByteTotal, CountedBytes } from '../../net/byte-total.ts'
import type { BatchWriter, WriteBatching } from '../../net/write-batching.ts'
import { headEnd } from '../field-bytes.ts'
import { writeChunked, writePieces } from './chunked.ts'
import { FastPathBody } from './fast-path-body.ts'
import { FAST_PATH_LIMITS, type FastPathHead, mayBeFastPath, parseFastPathHead } from './fast-path-head.ts'
import type { FastPathResponses } from './fast-path-response.ts'
import { CachedHead, type KnownHead } from './head-cache.ts'
import {
  type HttpResponse,
  INTERNAL_RESPONSE,
  PIECE_BYTES,
  type PostHandler,
  type PostVerdict,
  type Responder,
  type ResponseRest,
} from './post.ts'
import { sendRaw } from './reply.ts'

/** What all plain connections of a server share. */
export type FastPathHub = {
  readonly handler: PostHandler
  readonly responses: FastPathResponses
  readonly writes: WriteBatching
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveMs: number
  readonly requestsPerConnectionMax: number
  /** Bytes that connections have read and not used yet. */
  readonly pending: ByteTotal
  /** Monotonic, as of the last sweep: deadlines are kept to that, and no request reads the clock for them. */
  readonly nowMs: number
  isDraining(): boolean
  /** Gives the connection to the complete parser; the bytes that were read are back in front of it. */
  handOver(connection: FastPathConnection, socket: Socket): void
  onGone(connection: FastPathConnection): void
  /** With the id of the request, where it has got one. */
  onError(error: unknown, requestId?: string): void
}

type Reading = Extract<PostVerdict, { bodyBytesMax: number }>

type State =
  /** Nothing of a request has come. */
  | 'idle'
  | 'head'
  | 'body'
  /** The answer is being made. What follows on the wire waits. */
  | 'answering'
  /** The answer is on its way, slower than it was made. */
  | 'writing'
  /** Said its last word; what still comes is thrown away until the peer closes. */
  | 'ending'
  | 'gone'

const HEAD_END_BYTES = 4
/** Text of up to this size the runtime writes without asking for memory (`StreamBase::WriteString` has so much on its stack). */
const TEXT_BYTES_MAX = 16 * 1024
const NOTHING = Buffer.alloc(0)
/** How long a connection that was answered for the last time may take to close. */
const ENDING_MS = 2000

/**
 * One connection read plainly: one request at a time, each answered before the next is looked at. So answers keep their order, and a client that
 * sends ahead fills its own socket and nothing here. The first request that is not plain moves the whole connection to node:http.
 */
export class FastPathConnection implements Responder, BatchWriter {
  /** Monotonic. Looked at by the hub's sweep. */
  deadlineAtMs: number
  readonly #socket: Socket
  readonly #hub: FastPathHub
  #state: State = 'idle'
  /** Read and not yet used. */
  #pending: Buffer = NOTHING
  readonly #ahead: CountedBytes
  /** Bytes of a body that nobody wants any more. */
  #skip = 0
  readonly #body = new FastPathBody()
  #reading: Reading | undefined
  #requestId = ''
  #rest: ResponseRest | undefined
  /** Head and body of a small answer, one character a byte; written at the end of the turn. Of a larger one the head alone. */
  #out = ''
  #outBody: Buffer | undefined
  #isLast = false
  #served = 0
  /** From the second request on. */
  #known: CachedHead | undefined
  #isAdvancing = false
  #isPaused = false
  #peerHasEnded = false

  constructor(socket: Socket, hub: FastPathHub) {
    this.#socket = socket
    this.#hub = hub
    this.#ahead = new CountedBytes(hub.pending)
    this.deadlineAtMs = hub.nowMs + hub.headersTimeoutMs
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('drain', this.#onDrain)
    socket.on('close', this.#onClose)
    socket.on('error', ignore)
  }

  /** No request is under way: nobody misses the connection. */
  get isIdle(): boolean {
    return this.#state === 'idle' && this.#pending.length === 0 && this.#skip === 0
  }

  /** The deadline has passed. */
  expire(): void {
    const isWaitedFor =
      this.#state === 'head' || this.#state === 'body' || (this.#state === 'idle' && this.#served === 0)
    // A last answer that is still being read is no reason; who does not read it is cut off elsewhere.
    if (this.#state === 'ending' && this.#socket.writableLength > 0) return
    if (isWaitedFor && this.#skip === 0) this.#refuse(408, 'request-timeout')
    else this.#socket.destroy()
  }

  close(): void {
    this.#socket.destroy()
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#state === 'ending' || this.#state === 'gone') return
    const rest = this.#state === 'body' ? this.#fillBody(chunk) : chunk
    if (rest.length === 0) return
    this.#pending = this.#pending.length === 0 ? rest : Buffer.concat([this.#pending, rest])
    if (this.#state === 'idle' || this.#state === 'head') this.#advance()
    else this.#pause()
    // The bytes are a view of a buffer that is used again for the next read, on whichever connection.
    if (this.#pending.length > 0 && this.#pending.buffer === chunk.buffer) this.#pending = Buffer.from(this.#pending)
    this.#countPending()
  }

  #countPending(): void {
    if (!this.#ahead.set(this.#pending.length)) this.#socket.destroy()
  }

  readonly #onEnd = (): void => {
    this.#peerHasEnded = true
    if (this.#state === 'head' || this.#state === 'body') this.#refuse(400, 'malformed-request')
    else if (this.#state === 'idle' || this.#state === 'ending') this.#end()
  }

  readonly #onDrain = (): void => {
    if (this.#rest !== undefined) this.#rest.resume()
    else if (this.#state === 'writing') this.#next()
  }

  readonly #onClose = (): void => {
    this.#state = 'gone'
    this.#pending = NOTHING
    this.#countPending()
    this.#body.drop()
    this.#reading = undefined
    this.#rest?.abort()
    this.#rest = undefined
    this.#hub.onGone(this)
  }

  /** Works through what has been read, until a request has to be waited for. */
  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    while (this.#pending.length > 0 && (this.#state === 'idle' || this.#state === 'head')) {
      if (this.#skip > 0) this.#skipBody()
      else if (!this.#readHead()) break
    }
    this.#isAdvancing = false
  }

  #skipBody(): void {
    const skipped = Math.min(this.#skip, this.#pending.length)
    this.#skip -= skipped
    this.#pending = this.#pending.subarray(skipped)
  }

  /** False when more bytes are needed for it. */
  #readHead(): boolean {
    const again = this.#known?.again(this.#pending)
    if (again !== undefined) {
      this.#pending = after(this.#pending, (this.#known as CachedHead).bodyAt)
      this.#begin(again)
      return true
    }
    const end = headEnd(this.#pending, 0)
    if (end === -1 && this.#pending.length <= FAST_PATH_LIMITS.headBytesMax && mayBeFastPath(this.#pending)) {
      this.#awaitHead()
      return false
    }
    const isShort = end !== -1 && end <= FAST_PATH_LIMITS.headBytesMax
    const head = isShort ? parseFastPathHead(this.#pending.subarray(0, end + 2)) : undefined
    if (head === undefined) {
      this.#handOver()
      return false
    }
    const known = this.#remember(head, end + HEAD_END_BYTES)
    this.#pending = after(this.#pending, end + HEAD_END_BYTES)
    this.#begin(known)
    return true
  }

  /** Not before the second request: most connections that bring one bring many, and the others shall cost nothing. */
  #remember(head: FastPathHead, headBytes: number): KnownHead {
    if (this.#served === 0) return { ...head, kept: undefined }
    this.#known ??= new CachedHead()
    return this.#known.remember(head, this.#pending, headBytes)
  }

  #awaitHead(): void {
    if (this.#state === 'idle' && this.#served > 0) {
      this.deadlineAtMs = this.#hub.nowMs + this.#hub.headersTimeoutMs
    }
    this.#state = 'head'
  }

  #handOver(): void {
    const pending = this.#pending
    this.#state = 'gone'
    this.#pending = NOTHING
    this.#countPending()
    const socket = this.#socket
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.off('drain', this.#onDrain)
    socket.off('close', this.#onClose)
    socket.pause()
    socket.unshift(Buffer.from(pending))
    this.#hub.handOver(this, socket)
    socket.resume()
  }

  #begin({ target, headers, bodyBytes, kept }: KnownHead): void {
    this.#served += 1
    const verdict = this.#validate({ target, headers, bodyBytes, connection: this.#socket, kept })
    this.#requestId = verdict.requestId
    if ('response' in verdict) {
      this.#skip = bodyBytes
      const { response } = verdict
      this.#await()
      if (!(response instanceof Promise)) this.#send(response)
      else response.then((made) => this.#send(made)).catch((error: unknown) => this.fail(error))
      return
    }
    if (this.#pending.length >= bodyBytes) {
      this.#reading = verdict
      const body = this.#pending.length === bodyBytes ? this.#pending : this.#pending.subarray(0, bodyBytes)
      this.#pending = after(this.#pending, bodyBytes)
      this.#respond(body)
      return
    }
    const refusal = verdict.holdBody?.(bodyBytes)
    if (refusal !== undefined) {
      this.#skip = bodyBytes
      this.#await()
      return this.#send(refusal)
    }
    this.#reading = verdict
    this.#state = 'body'
    this.deadlineAtMs = this.#hub.nowMs + this.#hub.requestTimeoutMs
    this.#body.begin(bodyBytes, (bytes) => verdict.releaseBody?.(bytes))
    this.#pending = this.#fillBody(this.#pending)
  }

  #validate(head: Parameters<PostHandler['validate']>[0]): PostVerdict {
    try {
      return this.#hub.handler.validate(head)
    } catch (error) {
      this.#hub.onError(error)
      return { requestId: '-', response: INTERNAL_RESPONSE }
    }
  }

  /** Returns what lies behind the body. */
  #fillBody(chunk: Buffer): Buffer {
    const behind = this.#body.fill(chunk)
    if (this.#body.isComplete) this.#respond(this.#body.take())
    return behind
  }

  #respond(body: Buffer): void {
    const reading = this.#reading as Reading
    this.#reading = undefined
    this.#await()
    try {
      reading.onBody(body, this)
    } catch (error) {
      this.fail(error)
    }
  }

  /** The answer is being made. A client that sends ahead waits in its own socket from here on. */
  #await(): void {
    this.#state = 'answering'
    this.deadlineAtMs = Number.POSITIVE_INFINITY
    if (this.#pending.length > 0) this.#pause()
  }

  respond(response: HttpResponse): void {
    this.#send(response)
  }

  fail(error: unknown): void {
    this.#hub.onError(error, this.#requestId)
    this.#send(INTERNAL_RESPONSE)
  }

  #send(response: HttpResponse): void {
    const { rest } = response
    if (this.#state !== 'answering') return rest?.abort()
    const isLast =
      response.closes === true || this.#served >= this.#hub.requestsPerConnectionMax || this.#hub.isDraining()
    const body = typeof response.body === 'string' ? Buffer.from(response.body) : response.body
    const head = this.#hub.responses.head(response, this.#requestId, isLast, body.length)
    this.#state = 'writing'
    if (rest === undefined && body.length <= PIECE_BYTES) {
      const isText = head.length + body.length <= TEXT_BYTES_MAX
      this.#out = isText ? head + body.toString('latin1') : head
      this.#outBody = isText ? undefined : body
      this.#isLast = isLast
      return this.#hub.writes.add(this)
    }
    if (rest === undefined) return this.#sent(writePieces(this.#socket, head, body), isLast)
    this.#rest = rest
    writeChunked(this.#socket, { head: Buffer.from(head, 'latin1'), body, rest }, (isTaken) => {
      this.#rest = undefined
      if (this.#state === 'writing') this.#sent(isTaken, isLast)
    })
  }

  /** Called at the end of the turn in which a small answer was made. */
  writeNow(): void {
    const out = this.#out
    const body = this.#outBody
    this.#out = ''
    this.#outBody = undefined
    if (this.#state !== 'writing') return
    if (body === undefined) return this.#sent(this.#socket.write(out, 'latin1'), this.#isLast)
    this.#socket.cork()
    this.#socket.write(out, 'latin1')
    const isTaken = this.#socket.write(body)
    this.#socket.uncork()
    this.#sent(isTaken, this.#isLast)
  }

  /** The whole answer is written; `isTaken` when nothing of it waits for the peer. */
  #sent(isTaken: boolean, isLast: boolean): void {
    if (isLast) this.#end()
    else if (isTaken) this.#next()
  }

  /** The answer has left: the connection is free for the next request, or for what of it has come already. */
  #next(): void {
    this.#state = 'idle'
    // What is left of a body that nobody read has the time of a request to come.
    const waitMs = this.#skip > 0 ? this.#hub.requestTimeoutMs : this.#hub.keepAliveMs
    this.deadlineAtMs = this.#hub.nowMs + waitMs
    this.#advance()
    this.#countPending()
    const state = this.#state as State
    if (state === 'idle' && this.#pending.length === 0 && this.#peerHasEnded) this.#end()
    else if (this.#isPaused && (state === 'idle' || state === 'head' || state === 'body')) this.#resume()
  }

  /** A request that cannot be read to its end. */
  #refuse(status: number, reason: string): void {
    this.#state = 'ending'
    this.deadlineAtMs = this.#hub.nowMs + ENDING_MS
    sendRaw(this.#socket, status, JSON.stringify({ error: reason }))
  }

  /** The last answer goes out; what the peer still sends is read over, since unread bytes would turn the end into a reset. */
  #end(): void {
    this.#state = 'ending'
    this.deadlineAtMs = this.#hub.nowMs + ENDING_MS
    this.#pending = NOTHING
    if (this.#isPaused) this.#resume()
    this.#socket.end()
  }

  #pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  #resume(): void {
    this.#isPaused = false
    this.#socket.resume()
  }
}

function after(bytes: Buffer, count: number): Buffer {
  return bytes.length === count ? NOTHING : bytes.subarray(count)
}

function ignore(): void {}
