import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Writes `100 Continue` after the responses to earlier requests of the connection. The runtime writes it at once, for a pipelined request into the
 * middle of another response. A response that has begun by then needs no interim one. A request with another expectation is a request like any
 * other here: the runtime would respond with 417 itself, without a look at the rest of its head, and read what follows.
 */
export function continueInTurn(http: Server, isRefused: (request: IncomingMessage) => boolean): void {
  http.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    http.emit('request', request, response),
  )
  http.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (!isRefused(request)) {
      if (response.socket !== null) response.writeContinue()
      else
        response.once('socket', () => {
          if (!response.headersSent) response.writeContinue()
        })
    }
    http.emit('request', request, response)
  })
}

/** A client that sends more requests ahead of the responses is disconnected. */
const REQUESTS_AHEAD_MAX = 100
/** Those of them with a body, of which the runtime may hold 64 KiB each. */
const BODIES_AHEAD_MAX = 16

type QueuedRequest = { readonly request: IncomingMessage; readonly response: ServerResponse; handle(): void }

/**
 * The order of the requests of a connection. A request is handled when the response before it is sent, in a turn of the event loop of its own: one
 * read can contain thousands of requests, and none of them may hold the loop for all, nor leave its response in memory behind an unread one.
 */
export class PipelineQueue {
  /** By connection: the request under way, and those behind it. */
  readonly #queues = new WeakMap<Duplex, QueuedRequest[]>()
  readonly #ended = new WeakSet<Duplex>()

  /** Whether no more requests are handled: what looks like one may be part of what was refused. */
  hasEnded(socket: Duplex): boolean {
    return this.#ended.has(socket)
  }

  /** Whether it is behind another request of its connection. */
  isWaiting(request: IncomingMessage): boolean {
    return this.#queues.get(request.socket)?.[0]?.request !== request
  }

  /** The response that is being made now on a connection. */
  underWay(socket: Duplex): ServerResponse | undefined {
    return this.#queues.get(socket)?.[0]?.response
  }

  add(queued: QueuedRequest): void {
    const { socket } = queued.request
    const queue = this.#queues.get(socket)
    if (queue === undefined) {
      this.#queues.set(socket, [queued])
      this.#run(queued)
    } else if (queue.length <= REQUESTS_AHEAD_MAX && queue.filter(hasBody).length <= BODIES_AHEAD_MAX)
      queue.push(queued)
    else socket.destroy()
  }

  /** The last request of a connection. */
  addLast(queued: QueuedRequest): void {
    this.#ended.add(queued.request.socket)
    this.add(queued)
  }

  /** Bytes are no request, or part of one that is not complete in time: calls `refuse` behind the responses to the requests before. */
  fail(socket: Duplex, refuse: () => void): void {
    if (this.#ended.has(socket)) return
    this.#ended.add(socket)
    const queue = this.#queues.get(socket)
    const last = queue?.at(-1)
    if (queue === undefined || last === undefined) return refuse()
    if (!last.request.complete) queue.pop()
    const before = queue.at(-1)
    if (before !== undefined) before.response.once('close', refuse)
    else if (last.response.headersSent) socket.destroy()
    else refuse()
  }

  #run({ request: { socket }, response, handle }: QueuedRequest): void {
    if (socket.destroyed) return
    response.once('close', () => this.#next(socket))
    handle()
  }

  #next(socket: Duplex): void {
    const queue = this.#queues.get(socket) ?? []
    queue.shift()
    const [next] = queue
    if (next === undefined) this.#queues.delete(socket)
    else setImmediate(() => this.#run(next))
  }
}

function hasBody({ request: { headers } }: QueuedRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/**
 * Delays an upgrade, or a request for a tunnel, until the responses to earlier requests of its connection are sent. The runtime hands the socket over
 * at once.
 */
export function handOverInTurn(
  http: Server,
  queue: Pick<PipelineQueue, 'underWay'>,
  event: 'upgrade' | 'connect',
  handle: (request: IncomingMessage, socket: Duplex, head: Buffer) => void,
): void {
  const last = new WeakMap<Duplex, ServerResponse>()
  http.on('request', (request: IncomingMessage, response: ServerResponse) => last.set(request.socket, response))
  http.on(event, (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', ignore)
    // Where a body is still to come, the runtime hands over a stream around the connection.
    const connection = request.socket
    const earlier = last.get(connection)
    if (earlier === undefined || earlier.closed) return handle(request, socket, head)
    // The runtime has removed its own listener: a response that waits for its reader would wait for ever.
    const onDrain = (): void => {
      const response = queue.underWay(connection)
      if (response?.writableNeedDrain === true) response.emit('drain')
    }
    connection.on('drain', onDrain)
    earlier.once('close', () => {
      connection.off('drain', onDrain)
      if (earlier.writableFinished && earlier.shouldKeepAlive && !socket.destroyed) handle(request, socket, head)
      else socket.destroy()
    })
  })
}

function ignore(): void {}
