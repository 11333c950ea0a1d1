/**
 * The HTTP client for JSON-RPC calls to one node: POST only, over pooled HTTP/1.1 connections with one call on each. It has its own parser and
 * header cache, because every customer call passes here: it costs a fraction of node:http, knows of a failed call whether it was sent, and hands large
 * bodies over as a stream. Streaming calls to other servers go through `client.ts`.
 */
import assert from 'node:assert/strict'
import type { Clock } from '../../../core/clock.ts'
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

export function createHttpPool(given: HttpPoolOptions, { clock, address }: HttpPoolDeps): HttpPool {
  const settings = { ...DEFAULTS, ...given }
  const bodies = new BufferPool({ pooledBytesMax: POOLED_BODY_BYTES_MAX, largeBytes: settings.bufferedBytesMax })
  const options = { ...settings, bodies }
  const head = requestHead(address, options.headers ?? {})
  const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES)
  const writes = createWriteBatching()
  const connections = new Set<HttpConnection>()
  // The last one used is used next: it is the least likely to be dead, and surplus ones reach the idle timeout.
  const idle: HttpConnection[] = []
  const shares = new ConnectionShares<HttpExchange>(options)
  let connecting = 0
  let resolving = 0
  /** Time of the last sweep: precise enough for the idle timeout. */
  let sweptMs = clock.monotonicMs()
  let isClosed = false

  const events: HttpConnectionEvents = {
    onReady(connection) {
      connecting -= 1
      connection.idleUntilMs = clock.monotonicMs() + options.idleMs
      idle.push(connection)
      serveWaiting()
    },
    onIdle(connection, idleHintMs) {
      release(connection)
      const hintMs = idleHintMs === undefined ? Number.POSITIVE_INFINITY : idleHintMs - IDLE_HINT_MARGIN_MS
      connection.idleUntilMs = sweptMs + Math.min(options.idleMs, hintMs)
      if (hintMs <= 0 && shares.waiting === 0) connection.destroy('closed', 'not kept')
      else {
        idle.push(connection)
        serveWaiting()
      }
    },
    onClosed(connection, { was, cause, message }) {
      connections.delete(connection)
      if (was === 'busy') release(connection)
      else if (was === 'idle') removeIdle(connection)
      else {
        connecting -= 1
        address.lost('unreachable')
        // Where other connections are open the server is there, only late: the call waits on, for the next one that is free, until its own deadline.
        const isOnlyLate = cause === 'deadline' && shares.busy + idle.length > 0
        if (!isOnlyLate) failNext('connect', message)
      }
      serveWaiting()
    },
  }

  function removeIdle(connection: HttpConnection): void {
    const index = idle.indexOf(connection)
    if (index !== -1) idle.splice(index, 1)
  }

  function send(connection: HttpConnection, exchange: HttpExchange): void {
    shares.send(exchange.share)
    connection.share = exchange.share
    connection.send(exchange)
  }

  function release(connection: HttpConnection): void {
    if (connection.share !== undefined) shares.release(connection.share)
    connection.share = undefined
  }

  /** Why a call without a connection may not wait for one. */
  function whyRefused({ share }: HttpExchange): keyof typeof REFUSED | undefined {
    if (isClosed) return 'closed'
    if (shares.waiting >= options.waitingMax) return 'busy'
    return shares.mayWait(share) ? undefined : 'share'
  }

  /** Sends waiting calls over idle connections, perhaps several: calls may have waited for their owner's share alone. */
  function serveWaiting(): void {
    if (shares.waiting === 0) return
    while (idle.length > 0) {
      const exchange = shares.next()
      if (exchange === undefined) break
      send(idle.pop() as HttpConnection, exchange)
      shares.stopWaiting(exchange)
    }
    openForWaiting()
  }

  /** Opens as many connections as waiting calls can use, within the limits. */
  function openForWaiting(): void {
    const { connectionsMax, connectingMax } = options
    const mayOpen = () => connections.size + resolving < connectionsMax
    if (isClosed || !mayOpen()) return
    const wanted = Math.min(shares.sendable, connectingMax)
    while (connecting < wanted && mayOpen()) open()
  }

  function open(): void {
    connecting += 1
    const ip = address.known()
    if (ip !== undefined) return openTo(ip)
    resolving += 1
    void address.current().then((outcome) => {
      resolving -= 1
      if (outcome.ok && !isClosed) return openTo(outcome.ip)
      connecting -= 1
      if (!outcome.ok) failNext(outcome.reason === 'refused' ? 'address' : 'connect', outcome.message)
      openForWaiting()
    })
  }

  function openTo(ip: string): void {
    const { remote } = address
    const connection = new HttpConnection(
      { remote, ip, head, ca: options.ca, readBuffer, writes, ...(options.reader ? { reader: options.reader } : {}) },
      events,
      clock.monotonicMs(),
    )
    connections.add(connection)
  }

  /** A connection is opened for one call: when that fails, one call fails that would have been sent over it. */
  function failNext(cause: HttpCause, message: string): void {
    const exchange = shares.next()
    if (exchange === undefined) return
    shares.stopWaiting(exchange)
    exchange.fail('not-sent', cause, message)
  }

  const sweep = clock.setRepeating(SWEEP_MS, () => {
    const nowMs = clock.monotonicMs()
    sweptMs = nowMs
    if (shares.busy === 0) bodies.clear()
    for (const exchange of shares.allWaiting()) {
      if (exchange.deadlineAtMs > nowMs) continue
      shares.stopWaiting(exchange)
      exchange.fail('not-sent', 'deadline', 'no connection in time')
    }
    for (const connection of connections) {
      const { exchange } = connection
      if (exchange !== undefined) {
        if (exchange.deadlineAtMs <= nowMs) connection.destroy('deadline', 'no response in time')
      } else if (connection.isConnecting) {
        if (nowMs - connection.openedAtMs >= options.connectTimeoutMs)
          connection.destroy('deadline', 'no connection in time')
      } else if (connection.idleUntilMs <= nowMs) connection.destroy('closed', 'idle')
    }
  })
  sweep.unref?.()

  return {
    call(
      { body, bodyBytes = Buffer.byteLength(body), deadlineMs, nowMs = clock.monotonicMs(), movableUntil, owner },
      done,
    ) {
      const share = shares.of(owner)
      const exchange = new HttpExchange(
        { body, bodyBytes, deadlineAtMs: nowMs + deadlineMs, movableUntil, share },
        { options, clock, done },
      )
      const connection = isClosed || !shares.mayBeSent(share) ? undefined : idle.pop()
      if (connection !== undefined) send(connection, exchange)
      else {
        const cause = whyRefused(exchange)
        if (cause === undefined) {
          shares.wait(exchange)
          openForWaiting()
        } else {
          shares.forgetUnused(share)
          queueMicrotask(() => exchange.fail('not-sent', cause, REFUSED[cause]))
        }
      }
      return {
        abort() {
          if (exchange.isOver) return
          if (shares.stopWaiting(exchange)) exchange.fail('not-sent', 'aborted', 'aborted')
          else exchange.connection?.destroy('aborted', 'aborted')
        },
      }
    },
    giveUp() {
      for (const exchange of [...shares.allWaiting()]) {
        if (exchange.movableUntil === undefined) continue
        shares.stopWaiting(exchange)
        exchange.fail('not-sent', 'silent', SILENT)
      }
      for (const connection of [...connections]) {
        const { exchange } = connection
        if (exchange?.movableUntil === 'response' && !exchange.hasReply) connection.destroy('silent', SILENT)
      }
    },
    get inFlight() {
      return shares.busy + shares.waiting
    },
    get connections() {
      return connections.size
    },
    [Symbol.dispose]() {
      isClosed = true
      sweep.cancel()
      for (const exchange of [...shares.allWaiting()]) {
        shares.stopWaiting(exchange)
        exchange.fail('not-sent', 'closed', REFUSED.closed)
      }
      for (const connection of [...connections]) connection.destroy('closed', REFUSED.closed)
    },
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
