import type { Socket } from 'node:net'
import type { ByteTotal } from '../../net/byte-total.ts'
import type { WriteBatching } from '../../net/write-batching.ts'
import type { MemoizedHead } from './fast-path-head.ts'
import { FastPathInput, PartialBody } from './fast-path-input.ts'
import { FastPathOutput } from './fast-path-output.ts'
import type { FastPathResponses } from './fast-path-response.ts'
import { type HttpResponse, INTERNAL_RESPONSE, type PostDecision, type PostHandler, type ResponseSink } from './post.ts'
import { sendRaw } from './reply.ts'
import { type RequestRefusal, requestRefusal } from './request-refusals.ts'

/** What all fast-path connections of a server share. */
export type FastPathContext = {
  readonly handler: PostHandler
  readonly responses: FastPathResponses
  readonly writes: WriteBatching
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveMs: number
  readonly requestsPerConnectionMax: number
  /** Bytes that connections have read and not used yet. */
  readonly pending: ByteTotal
  /** Monotonic, as of the last sweep. Deadlines have that resolution, so that no request reads the clock for them. */
  readonly nowMs: number
  isDraining(): boolean
  /** Gives the connection to the complete parser; the bytes that were read are unshifted. */
  handOver(connection: FastPathConnection, socket: Socket): void
  onClosed(connection: FastPathConnection): void
  /** With the id of the request, where it has one. */
  onError(error: unknown, requestId?: string): void
}

type AcceptedPost = Extract<PostDecision, { bodyBytesMax: number }>

type State =
  /** Between two requests: no byte of the next one has come. */
  | 'idle'
  | 'reading-head'
  | 'reading-body'
  /** The handler makes the response. Further input waits. */
  | 'responding'
  /** The response is made and not completely sent. */
  | 'writing'
  /** The last response is sent. Input is discarded until the peer closes. */
  | 'lingering'
  | 'closed'

/** How long a connection may linger. */
const LINGER_MS = 2000

/**
 * One connection on the fast path. It reads one request at a time and responds before it reads the next, so responses keep their order, and a
 * client that pipelines fills its own socket. The first request in another form moves the connection to node:http.
 */
export class FastPathConnection implements ResponseSink {
  /** Monotonic. Checked by the server's sweep. */
  deadlineAtMs: number
  readonly #socket: Socket
  readonly #context: FastPathContext
  readonly #input: FastPathInput
  readonly #output: FastPathOutput
  readonly #body = new PartialBody()
  #state: State = 'idle'
  /** The request whose body is read. */
  #post: AcceptedPost | undefined
  /** The request whose response is made. */
  #handled: AcceptedPost | undefined
  #requestId = ''
  #served = 0
  /** The connection closes after the response that is written. */
  #isLastResponse = false
  #isAdvancing = false
  #isPaused = false
  #peerHasEnded = false

  constructor(socket: Socket, context: FastPathContext) {
    this.#socket = socket
    this.#context = context
    this.#input = new FastPathInput(context.pending)
    this.#output = new FastPathOutput(socket, context.writes, (isTaken) => this.#onWritten(isTaken))
    this.deadlineAtMs = context.nowMs + context.headersTimeoutMs
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('drain', this.#onDrain)
    socket.on('close', this.#onClose)
    socket.on('error', ignore)
  }

  /** No request is under way, so the connection may be closed. */
  get isIdle(): boolean {
    return this.#state === 'idle' && this.#input.isEmpty && !this.#input.isDiscarding
  }

  /** The deadline has passed. */
  expire(): void {
    // A peer that does not read its last response is closed by the stall watch.
    if (this.#state === 'lingering' && this.#socket.writableLength > 0) return
    const isIncomplete =
      this.#state === 'reading-head' || this.#state === 'reading-body' || (this.#state === 'idle' && this.#served === 0)
    if (isIncomplete && !this.#input.isDiscarding) this.#refuse(requestRefusal('request-timeout'))
    else this.#socket.destroy()
  }

  close(): void {
    this.#socket.destroy()
  }

  respond(response: HttpResponse): void {
    this.#send(response)
  }

  fail(error: unknown): void {
    this.#context.onError(error, this.#requestId)
    this.#send(INTERNAL_RESPONSE)
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#state === 'lingering' || this.#state === 'closed') return
    const unused = this.#state === 'reading-body' ? this.#fillBody(chunk) : chunk
    if (unused.length === 0) return
    this.#input.append(unused)
    if (this.#state === 'idle' || this.#state === 'reading-head') this.#advance()
    else this.#pause()
    this.#input.detachFrom(chunk)
    this.#countInput()
  }

  readonly #onEnd = (): void => {
    this.#peerHasEnded = true
    if (this.#state === 'reading-head' || this.#state === 'reading-body')
      this.#refuse(requestRefusal('malformed-request'))
    else if (this.#state === 'idle' || this.#state === 'lingering') this.#linger()
  }

  readonly #onDrain = (): void => {
    if (!this.#output.resume() && this.#state === 'writing') this.#becomeIdle()
  }

  readonly #onClose = (): void => {
    this.#state = 'closed'
    this.#input.takeAll()
    this.#countInput()
    this.#body.drop()
    this.#post = undefined
    this.#handled = undefined
    this.#output.abort()
    this.#context.onClosed(this)
  }

  #countInput(): void {
    if (!this.#input.count()) this.#socket.destroy()
  }

  /** Reads requests from the input until one needs more bytes or a response. */
  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    while (!this.#input.isEmpty && (this.#state === 'idle' || this.#state === 'reading-head')) {
      if (this.#input.isDiscarding) {
        this.#input.dropDiscarded()
        continue
      }
      const head = this.#input.readHead(this.#served === 0)
      if (head === 'more') {
        this.#awaitHead()
        break
      }
      if (head === undefined) {
        this.#handOver()
        break
      }
      this.#begin(head)
    }
    this.#isAdvancing = false
  }

  #awaitHead(): void {
    // The first head has its time from the connect on.
    if (this.#state === 'idle' && this.#served > 0) {
      this.deadlineAtMs = this.#context.nowMs + this.#context.headersTimeoutMs
    }
    this.#state = 'reading-head'
  }

  #handOver(): void {
    const unread = this.#input.takeAll()
    this.#state = 'closed'
    this.#countInput()
    const socket = this.#socket
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.off('drain', this.#onDrain)
    socket.off('close', this.#onClose)
    socket.pause()
    socket.unshift(Buffer.from(unread))
    this.#context.handOver(this, socket)
    socket.resume()
  }

  #begin({ target, headers, bodyBytes, memo }: MemoizedHead): void {
    this.#served += 1
    const decision = this.#validate({ target, headers, bodyBytes, connection: this.#socket, memo })
    this.#requestId = decision.requestId
    if ('response' in decision) return this.#respondWithoutBody(bodyBytes, decision.response)
    const body = this.#input.takeBody(bodyBytes)
    if (body !== undefined) return this.#handle(decision, body)
    const refusal = decision.holdBody?.(bodyBytes)
    if (refusal !== undefined) return this.#respondWithoutBody(bodyBytes, refusal)
    this.#post = decision
    this.#state = 'reading-body'
    this.deadlineAtMs = this.#context.nowMs + this.#context.requestTimeoutMs
    this.#body.begin(bodyBytes, (bytes) => decision.releaseBody?.(bytes))
    this.#input.append(this.#fillBody(this.#input.takeAll()))
  }

  #validate(head: Parameters<PostHandler['validate']>[0]): PostDecision {
    try {
      return this.#context.handler.validate(head)
    } catch (error) {
      this.#context.onError(error)
      return { requestId: '-', response: INTERNAL_RESPONSE }
    }
  }

  #respondWithoutBody(bodyBytes: number, response: HttpResponse | Promise<HttpResponse>): void {
    this.#input.discard(bodyBytes)
    this.#awaitResponse()
    if (!(response instanceof Promise)) this.#send(response)
    else response.then((made) => this.#send(made)).catch((error: unknown) => this.fail(error))
  }

  /** Returns the bytes behind the body. */
  #fillBody(chunk: Buffer): Buffer {
    const unused = this.#body.fill(chunk)
    if (this.#body.isComplete) {
      const post = this.#post as AcceptedPost
      this.#post = undefined
      this.#handle(post, this.#body.take())
    }
    return unused
  }

  #handle(post: AcceptedPost, body: Buffer): void {
    this.#awaitResponse()
    this.#handled = post
    try {
      post.onBody(body, this)
    } catch (error) {
      this.fail(error)
    }
  }

  #awaitResponse(): void {
    this.#state = 'responding'
    this.deadlineAtMs = Number.POSITIVE_INFINITY
    if (!this.#input.isEmpty) this.#pause()
  }

  #send(response: HttpResponse): void {
    const { rest } = response
    if (this.#state !== 'responding') return rest?.abort()
    this.#isLastResponse =
      response.closes === true || this.#served >= this.#context.requestsPerConnectionMax || this.#context.isDraining()
    const body = typeof response.body === 'string' ? Buffer.from(response.body) : response.body
    const head = this.#context.responses.head(response, this.#requestId, this.#isLastResponse, body.length)
    const handled = this.#handled
    this.#handled = undefined
    this.#state = 'writing'
    this.#output.write(head, body, response, handled)
  }

  #onWritten(isTaken: boolean): void {
    if (this.#state !== 'writing') return
    if (this.#isLastResponse) this.#linger()
    else if (isTaken) this.#becomeIdle()
  }

  /** The response is sent: the next request is read, or what has come of it already. */
  #becomeIdle(): void {
    this.#state = 'idle'
    // The rest of a discarded body has the time of a request.
    const waitMs = this.#input.isDiscarding ? this.#context.requestTimeoutMs : this.#context.keepAliveMs
    this.deadlineAtMs = this.#context.nowMs + waitMs
    this.#advance()
    this.#countInput()
    const state = this.#state as State
    if (state === 'idle' && this.#input.isEmpty && this.#peerHasEnded) this.#linger()
    else if (this.#isPaused && (state === 'idle' || state === 'reading-head' || state === 'reading-body'))
      this.#resume()
  }

  /** The request cannot be read to its end. */
  #refuse({ status, body }: RequestRefusal): void {
    this.#state = 'lingering'
    this.deadlineAtMs = this.#context.nowMs + LINGER_MS
    sendRaw(this.#socket, status, JSON.stringify(body))
  }

  /** Ends this side and discards what the peer still sends: unread bytes would turn the close into a reset. */
  #linger(): void {
    this.#state = 'lingering'
    this.deadlineAtMs = this.#context.nowMs + LINGER_MS
    this.#input.takeAll()
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

function ignore(): void {}
