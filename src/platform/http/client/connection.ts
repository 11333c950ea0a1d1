import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { RemoteAddress } from '../../net/pinned-address.ts'
import type { BatchWriter, WriteBatching } from '../../net/write-batching.ts'
import type { ConnectionShare } from './connection-shares.ts'
import type { ExchangeConnection, HttpCause, HttpExchange } from './exchange.ts'
import {
  type ResponseEvents,
  type ResponseHead,
  ResponseReader,
  type ResponseReaderOptions,
} from './response-reader.ts'

export type HttpConnectionOptions = {
  readonly remote: RemoteAddress
  readonly ip: string
  /** Request line and headers up to the value of Content-Length. */
  readonly head: string
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
  readonly reader?: ResponseReaderOptions
  /** Read buffer that all connections of a pool share. */
  readonly readBuffer: Buffer
  readonly writes: WriteBatching
}

export type HttpConnectionEvents = {
  onReady(connection: HttpConnection): void
  /** The response is complete and the connection can take the next call. */
  onIdle(connection: HttpConnection, idleHintMs: number | undefined): void
  /** Called once, before the exchange on it fails. */
  onClosed(
    connection: HttpConnection,
    how: { readonly was: 'connecting' | 'idle' | 'busy'; readonly cause: HttpCause; readonly message: string },
  ): void
}

const KEEP_ALIVE_PROBE_MS = 30_000

/** One connection to a server with at most one call on it. Unexpected bytes close it. */
export class HttpConnection implements ExchangeConnection, ResponseEvents, BatchWriter {
  readonly openedAtMs: number
  idleUntilMs = Number.POSITIVE_INFINITY
  /** The share of the owner of the call that is on it. */
  share: ConnectionShare<HttpExchange> | undefined
  #state: 'connecting' | 'idle' | 'busy' | 'closed' = 'connecting'
  #exchange: HttpExchange | undefined
  #served = 0
  #keepsAlive = false
  #isPaused = false
  #idleHintMs: number | undefined
  /** The request, until it is written at the end of the turn. */
  #out: string | undefined
  readonly #head: string
  readonly #writes: WriteBatching
  readonly #socket: Socket
  readonly #reader: ResponseReader
  readonly #events: HttpConnectionEvents

  constructor(options: HttpConnectionOptions, events: HttpConnectionEvents, nowMs: number) {
    this.openedAtMs = nowMs
    this.#head = options.head
    this.#writes = options.writes
    this.#events = events
    this.#reader = new ResponseReader(this, options.reader)
    this.#socket = openSocket(options, (bytes) => this.#onBytes(bytes))
    this.#socket.on(options.remote.secure ? 'secureConnect' : 'connect', () => {
      this.#state = 'idle'
      this.#events.onReady(this)
    })
    this.#socket.on('error', (error: NodeJS.ErrnoException) => this.#close('broken', codeOf(error)))
    this.#socket.on('end', () => this.#onEnd())
    this.#socket.on('close', () => this.#close('broken', 'connection closed'))
  }

  get isConnecting(): boolean {
    return this.#state === 'connecting'
  }

  get exchange(): HttpExchange | undefined {
    return this.#exchange
  }

  /** Only on a connection that is ready and idle. */
  send(exchange: HttpExchange): void {
    this.#state = 'busy'
    this.#exchange = exchange
    exchange.connection = this
    this.#reader.begin()
    this.#out = this.#head + requestTail(exchange)
    this.#writes.add(this)
  }

  writeNow(): void {
    const out = this.#out
    this.#out = undefined
    if (out !== undefined) this.#socket.write(out, 'latin1')
  }

  destroy(cause: HttpCause, message: string): void {
    this.#close(cause, message)
  }

  pauseReading(): void {
    if (this.#state !== 'busy') return
    this.#isPaused = true
    this.#socket.pause()
  }

  resumeReading(): void {
    if (!this.#isPaused || this.#state === 'closed') return
    this.#isPaused = false
    this.#socket.resume()
  }

  onHead(head: ResponseHead): void {
    this.#keepsAlive = head.keepsAlive
    this.#idleHintMs = head.idleHintMs
    this.#exchange?.onHead(head)
  }

  onBody(bytes: Buffer): void {
    this.#exchange?.onBody(bytes)
  }

  #onBytes(bytes: Buffer): void {
    // Not before the request has left either: they cannot be its response.
    if (this.#state !== 'busy' || this.#out !== undefined) return this.#close('broken', 'unsolicited bytes')
    const result = this.#reader.push(bytes)
    // The exchange may have destroyed the connection.
    if ((this.#state as string) === 'closed' || result === 'more') return
    if (result === 'fault') return this.#close('bad-response', this.#reader.fault)
    this.#complete(result === 'done' && this.#keepsAlive)
  }

  #onEnd(): void {
    if (this.#state === 'busy' && this.#reader.end() === 'done') this.#complete(false)
    else this.#close('broken', 'connection closed')
  }

  /** The response is complete. The connection becomes idle before the response is delivered, so that the next call can use it. */
  #complete(isReusable: boolean): void {
    const exchange = this.#exchange as HttpExchange
    this.#exchange = undefined
    // The connection may carry another call next: the finished exchange must not reach it.
    exchange.connection = undefined
    this.#served += 1
    if (isReusable) {
      this.#state = 'idle'
      this.resumeReading()
      this.#events.onIdle(this, this.#idleHintMs)
    } else {
      this.#close('closed', 'not reusable')
    }
    exchange.onEnd()
  }

  #close(cause: HttpCause, message: string): void {
    if (this.#state === 'closed') return
    const was = this.#state
    const exchange = this.#exchange
    const isUnsent = this.#out !== undefined
    this.#out = undefined
    this.#state = 'closed'
    this.#exchange = undefined
    this.#socket.destroy()
    this.#events.onClosed(this, { was, cause, message })
    if (exchange === undefined) return
    const isStale = cause === 'broken' && this.#served > 0 && !exchange.hasReply
    exchange.fail(isUnsent ? 'not-sent' : 'maybe-sent', isStale ? 'stale' : cause, message)
  }
}

function openSocket({ remote, ip, ca, readBuffer }: HttpConnectionOptions, onBytes: (bytes: Buffer) => void): Socket {
  const options = {
    host: ip,
    port: remote.port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    onread: {
      buffer: readBuffer,
      callback: (bytes: number) => {
        onBytes(bytes === readBuffer.length ? readBuffer : readBuffer.subarray(0, bytes))
        return true
      },
    },
  }
  if (!remote.secure) return connect(options)
  return connectTls({
    ...options,
    ...(isIP(remote.host) === 0 ? { servername: remote.host } : {}),
    ...(ca === undefined ? {} : { ca }),
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
  })
}

/** The value of Content-Length, the end of the head and the body, one character a byte. */
function requestTail({ body, bodyBytes }: HttpExchange): string {
  const isAscii = typeof body === 'string' && body.length === bodyBytes
  return `${bodyBytes}\r\n\r\n${isAscii ? body : Buffer.from(body as string).toString('latin1')}`
}

/** The system's error code; its message would contain the address. */
function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? 'connection failed'
}
