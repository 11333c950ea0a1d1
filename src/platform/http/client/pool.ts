/**
 * The HTTP client for JSON-RPC calls to one node: POST only, over pooled HTTP/1.1 connections with one call on each. It has its own parser and
 * header cache, because every customer call passes here: it costs a fraction of node:http, knows of a failed call whether it was sent, and hands large
 * bodies over as a stream. Streaming calls to other servers go through `client.ts`.
 */
import assert from 'node:assert/strict'
import type { Clock, Timer } from '../../../core/clock.ts'
import { BufferPool } from '../../net/buffer-pool.ts'
import { hostHeader, type PinnedAddress } from '../../net/pinned-address.ts'
import { createWriteBatching } from '../../net/write-batching.ts'
import { HttpConnection, type HttpConnectionEvents } from './connection.ts'
import { ConnectionShares } from './connection-shares.ts'
import { type HttpCause, HttpExchange, type HttpOutcome, type MovableUntil } from './exchange.ts'
import type { ResponseReaderOptions } from './response-reader.ts'

export type HttpPoolOptions = {
  /** Sent with every call beside Host, Content-Type and Content-Length. May contain a credential, so it is never logged. */
  readonly headers?: Readonly<Record<string, string>>
  readonly connectionsMax?: number
  /** Connections that are opened at a time. More would overflow the queue of a server that does not accept for a moment, and what it drops is late by seconds. */
  readonly connectingMax?: number
  /** Calls that wait for a connection; one more fails with `busy`. */
  readonly waitingMax?: number
  /** By default long enough for the third attempt of the system, three seconds after the first: a server that accepts slowly drops some. */
  readonly connectTimeoutMs?: number
  /** Idle connections are closed after this, or a second before the server announced to close them. */
  readonly idleMs?: number
  /** Response bodies up to this size are delivered complete, larger ones as a stream. */
  readonly bufferedBytesMax?: number
  /** A streaming body that brings less than 64 KiB in this time has failed. */
  readonly stallMs?: number
  readonly reader?: ResponseReaderOptions
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
}

export type HttpPoolDeps = { readonly clock: Clock; readonly address: PinnedAddress }

export type HttpRequest = {
  /** Text is sent as UTF-8. */
  readonly body: Uint8Array | string
  /** Length of the body in bytes, where the caller knows it. */
  readonly bodyBytes?: number | undefined
  /** From now until the response is complete, or for a streaming one until it begins. */
  readonly deadlineMs: number
  /** The time of the pool's clock, where the caller has just read it. */
  readonly nowMs?: number | undefined
  /** Until when `giveUp` ends it: until it is sent, or until its response begins. Never where it is missing. */
  readonly movableUntil?: MovableUntil | undefined
  /** Whose call it is. One owner gets only a part of scarce connections; without an owner a call is not limited. */
  readonly owner?: string | undefined
}

/** Redirects are responses like any other. */
export type HttpPool = Disposable & {
  /** `done` is called exactly once, never before this returns. */
  call(request: HttpRequest, done: (outcome: HttpOutcome) => void): { abort(): void }
  /** The server is silent: fails the calls that may move to another one. */
  giveUp(): void
  /** Calls that are sent or wait for a connection. */
  readonly inFlight: number
  readonly connections: number
}

const SILENT = 'no response'
const REFUSED = {
  closed: 'the pool is closed',
  busy: 'too many calls wait for a connection',
  share: 'too many calls of one owner wait for a connection',
}

const DEFAULTS = {
  connectionsMax: 256,
  connectingMax: 128,
  waitingMax: 1024,
  connectTimeoutMs: 4000,
  idleMs: 30_000,
  bufferedBytesMax: 64 * 1024,
  stallMs: 10_000,
}
/** One sweep over all connections instead of a timer for each call; deadlines have this resolution. */
const SWEEP_MS = 50
const READ_BYTES = 64 * 1024
/** Memory of response bodies that is kept for the next ones while calls are in flight. */
const POOLED_BODY_BYTES_MAX = 4 * 1024 * 1024
/** A connection is closed this long before the server would close it, so that no call is sent into the close. */
const IDLE_HINT_MARGIN_MS = 1000

export function createHttpPool(options: HttpPoolOptions, deps: HttpPoolDeps): HttpPool {
  return new ConnectionPool(options, deps)
}

class ConnectionPool implements HttpPool {
  readonly #options: typeof DEFAULTS & HttpPoolOptions & { readonly bodies: BufferPool }
  readonly #clock: Clock
  readonly #address: PinnedAddress
  readonly #head: string
  readonly #readBuffer = Buffer.allocUnsafeSlow(READ_BYTES)
  readonly #writes = createWriteBatching()
  readonly #connections = new Set<HttpConnection>()
  // The last one used is used next: it is the least likely to be dead, and surplus ones reach the idle timeout.
  readonly #idle: HttpConnection[] = []
  readonly #shares: ConnectionShares<HttpExchange>
  readonly #sweeping: Timer
  #connecting = 0
  #resolving = 0
  /** Time of the last sweep: precise enough for the idle timeout. */
  #sweptMs: number
  #isClosed = false

  constructor(given: HttpPoolOptions, { clock, address }: HttpPoolDeps) {
    const settings = { ...DEFAULTS, ...given }
    const bodies = new BufferPool({ pooledBytesMax: POOLED_BODY_BYTES_MAX, largeBytes: settings.bufferedBytesMax })
    this.#options = { ...settings, bodies }
    this.#clock = clock
    this.#address = address
    this.#head = requestHead(address, settings.headers ?? {})
    this.#shares = new ConnectionShares<HttpExchange>(settings)
    this.#sweptMs = clock.monotonicMs()
    this.#sweeping = clock.setRepeating(SWEEP_MS, () => this.#sweep())
    this.#sweeping.unref?.()
  }

  get inFlight(): number {
    return this.#shares.busy + this.#shares.waiting
  }

  get connections(): number {
    return this.#connections.size
  }

  call(request: HttpRequest, done: (outcome: HttpOutcome) => void): { abort(): void } {
    const { body, bodyBytes = Buffer.byteLength(body), nowMs = this.#clock.monotonicMs(), movableUntil } = request
    const share = this.#shares.of(request.owner)
    const exchange = new HttpExchange(
      { body, bodyBytes, deadlineAtMs: nowMs + request.deadlineMs, movableUntil, share },
      { options: this.#options, clock: this.#clock, done },
    )
    const connection = this.#isClosed || !this.#shares.mayBeSent(share) ? undefined : this.#idle.pop()
    if (connection !== undefined) this.#send(connection, exchange)
    else this.#wait(exchange)
    return { abort: () => this.#abort(exchange) }
  }

  giveUp(): void {
    for (const exchange of [...this.#shares.allWaiting()])
      if (exchange.movableUntil !== undefined) this.#failWaiting(exchange, 'silent', SILENT)
    for (const connection of [...this.#connections]) {
      const { exchange } = connection
      if (exchange?.movableUntil === 'response' && !exchange.hasReply) connection.destroy('silent', SILENT)
    }
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    this.#sweeping.cancel()
    for (const exchange of [...this.#shares.allWaiting()]) this.#failWaiting(exchange, 'closed', REFUSED.closed)
    for (const connection of [...this.#connections]) connection.destroy('closed', REFUSED.closed)
  }

  #send(connection: HttpConnection, exchange: HttpExchange): void {
    this.#shares.send(exchange.share)
    connection.share = exchange.share
    connection.send(exchange)
  }

  #wait(exchange: HttpExchange): void {
    const cause = this.#whyRefused(exchange)
    if (cause === undefined) {
      this.#shares.wait(exchange)
      this.#openForWaiting()
    } else {
      this.#shares.forgetUnused(exchange.share)
      queueMicrotask(() => exchange.fail('not-sent', cause, REFUSED[cause]))
    }
  }

  /** Why a call without a connection may not wait for one. */
  #whyRefused({ share }: HttpExchange): keyof typeof REFUSED | undefined {
    if (this.#isClosed) return 'closed'
    if (this.#shares.waiting >= this.#options.waitingMax) return 'busy'
    return this.#shares.mayWait(share) ? undefined : 'share'
  }

  #abort(exchange: HttpExchange): void {
    if (exchange.isOver) return
    if (this.#shares.stopWaiting(exchange)) exchange.fail('not-sent', 'aborted', 'aborted')
    else exchange.connection?.destroy('aborted', 'aborted')
  }

  #failWaiting(exchange: HttpExchange, cause: HttpCause, message: string): void {
    this.#shares.stopWaiting(exchange)
    exchange.fail('not-sent', cause, message)
  }

  /** Sends waiting calls over idle connections, perhaps several: calls may have waited for their owner's share alone. */
  #serveWaiting(): void {
    if (this.#shares.waiting === 0) return
    while (this.#idle.length > 0) {
      const exchange = this.#shares.next()
      if (exchange === undefined) break
      this.#send(this.#idle.pop() as HttpConnection, exchange)
      this.#shares.stopWaiting(exchange)
    }
    this.#openForWaiting()
  }

  /** Opens as many connections as waiting calls can use, within the limits. */
  #openForWaiting(): void {
    const { connectionsMax, connectingMax } = this.#options
    const mayOpen = () => this.#connections.size + this.#resolving < connectionsMax
    if (this.#isClosed || !mayOpen()) return
    const wanted = Math.min(this.#shares.sendable, connectingMax)
    while (this.#connecting < wanted && mayOpen()) this.#open()
  }

  #open(): void {
    this.#connecting += 1
    const ip = this.#address.known()
    if (ip !== undefined) return this.#openTo(ip)
    this.#resolving += 1
    void this.#address.current().then((outcome) => {
      this.#resolving -= 1
      if (outcome.ok && !this.#isClosed) return this.#openTo(outcome.ip)
      this.#connecting -= 1
      if (!outcome.ok) this.#failNext(outcome.reason === 'refused' ? 'address' : 'connect', outcome.message)
      this.#openForWaiting()
    })
  }

  #openTo(ip: string): void {
    const { remote } = this.#address
    const { ca, reader } = this.#options
    const connection = new HttpConnection(
      {
        remote,
        ip,
        head: this.#head,
        ca,
        readBuffer: this.#readBuffer,
        writes: this.#writes,
        ...(reader && { reader }),
      },
      this.#events,
      this.#clock.monotonicMs(),
    )
    this.#connections.add(connection)
  }

  /** A connection is opened for one call: when that fails, one call fails that would have been sent over it. */
  #failNext(cause: HttpCause, message: string): void {
    const exchange = this.#shares.next()
    if (exchange !== undefined) this.#failWaiting(exchange, cause, message)
  }

  readonly #events: HttpConnectionEvents = {
    onReady: (connection) => {
      this.#connecting -= 1
      connection.idleUntilMs = this.#clock.monotonicMs() + this.#options.idleMs
      this.#idle.push(connection)
      this.#serveWaiting()
    },
    onIdle: (connection, idleHintMs) => {
      this.#release(connection)
      const hintMs = idleHintMs === undefined ? Number.POSITIVE_INFINITY : idleHintMs - IDLE_HINT_MARGIN_MS
      connection.idleUntilMs = this.#sweptMs + Math.min(this.#options.idleMs, hintMs)
      if (hintMs <= 0 && this.#shares.waiting === 0) return connection.destroy('closed', 'not kept')
      this.#idle.push(connection)
      this.#serveWaiting()
    },
    onClosed: (connection, { was, cause, message }) => {
      this.#connections.delete(connection)
      if (was === 'busy') this.#release(connection)
      else if (was === 'idle') this.#removeIdle(connection)
      else this.#onNotConnected(cause, message)
      this.#serveWaiting()
    },
  }

  #onNotConnected(cause: HttpCause, message: string): void {
    this.#connecting -= 1
    this.#address.lost('unreachable')
    // Where other connections are open the server is there, only late: the call waits on, for the next one that is free, until its own deadline.
    const isOnlyLate = cause === 'deadline' && this.#shares.busy + this.#idle.length > 0
    if (!isOnlyLate) this.#failNext('connect', message)
  }

  #release(connection: HttpConnection): void {
    if (connection.share !== undefined) this.#shares.release(connection.share)
    connection.share = undefined
  }

  #removeIdle(connection: HttpConnection): void {
    const index = this.#idle.indexOf(connection)
    if (index !== -1) this.#idle.splice(index, 1)
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs()
    this.#sweptMs = nowMs
    if (this.#shares.busy === 0) this.#options.bodies.clear()
    for (const exchange of this.#shares.allWaiting())
      if (exchange.deadlineAtMs <= nowMs) this.#failWaiting(exchange, 'deadline', 'no connection in time')
    for (const connection of this.#connections) {
      const { exchange } = connection
      if (exchange !== undefined) {
        if (exchange.deadlineAtMs <= nowMs) connection.destroy('deadline', 'no response in time')
      } else if (connection.isConnecting) {
        if (nowMs - connection.openedAtMs >= this.#options.connectTimeoutMs)
          connection.destroy('deadline', 'no connection in time')
      } else if (connection.idleUntilMs <= nowMs) connection.destroy('closed', 'idle')
    }
  }
}

/** Request line and headers up to the value of Content-Length, made once. */
function requestHead(address: PinnedAddress, headers: Readonly<Record<string, string>>): string {
  for (const [name, value] of Object.entries(headers)) {
    // The message does not contain the value: it may be a credential.
    assert(
      /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name) && /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(value),
      `${name} is not a valid header`,
    )
  }
  const lines = [
    `POST ${address.remote.path} HTTP/1.1`,
    `host: ${hostHeader(address.remote)}`,
    'content-type: application/json',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'content-length: ',
  ]
  return lines.join('\r\n')
}
