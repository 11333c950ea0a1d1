import assert from 'node:assert/strict'
import type { Clock } from '../../../core/clock.ts'
import { hostHeader, type PinnedAddress } from '../../net/pinned-address.ts'
import { createWriteBatching } from '../../net/write-batching.ts'
import { HttpConnection, type HttpConnectionEvents } from './connection.ts'
import { type HttpCause, HttpExchange, type HttpOutcome } from './exchange.ts'
import type { ResponseReaderOptions } from './response-reader.ts'

export type HttpPoolOptions = {
  /** Sent with every call beside Host, Content-Type and Content-Length. May hold a credential, so it is never printed. */
  readonly headers?: Readonly<Record<string, string>>
  readonly connectionsMax?: number
  /** Calls that wait for a connection; one more is answered `busy`. */
  readonly waitingMax?: number
  readonly connectTimeoutMs?: number
  /** Idle connections are closed after this, or a second before the server says it would. */
  readonly idleMs?: number
  readonly wholeBytesMax?: number
  readonly stallMs?: number
  readonly reader?: ResponseReaderOptions
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
}

export type HttpPoolDeps = { readonly clock: Clock; readonly address: PinnedAddress }

export type HttpRequest = {
  /** Text goes out as UTF-8. */
  readonly body: Uint8Array | string
  /** Length of the body where that is known to whoever wrote it. */
  readonly bodyBytes?: number | undefined
  /** From now until the answer is whole, or until it has begun when it is a large one. */
  readonly deadlineMs: number
  /** Now, by the pool's clock, where the caller has just looked. */
  readonly nowMs?: number | undefined
}

/** POST calls to one server over many kept HTTP/1.1 connections, one call on each. Redirects are answers like any other. */
export type HttpPool = Disposable & {
  /** `done` is called exactly once, never before this returns. */
  call(request: HttpRequest, done: (outcome: HttpOutcome) => void): { abort(): void }
  /** Calls that are on their way or wait for a connection. */
  readonly inFlight: number
  readonly connections: number
}

const DEFAULTS = {
  connectionsMax: 256,
  waitingMax: 1024,
  connectTimeoutMs: 2000,
  idleMs: 30_000,
  wholeBytesMax: 64 * 1024,
  stallMs: 10_000,
}
/** One look at all connections instead of a timer for each call; deadlines are kept to this. */
const SWEEP_MS = 50
const READ_BYTES = 64 * 1024
/** A connection is given up this long before the server would: a call in between would meet a closed door. */
const IDLE_HINT_MARGIN_MS = 1000

export function createHttpPool(given: HttpPoolOptions, { clock, address }: HttpPoolDeps): HttpPool {
  const options = { ...DEFAULTS, ...given }
  const head = requestHead(address, options.headers ?? {})
  const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES)
  const writes = createWriteBatching()
  const connections = new Set<HttpConnection>()
  // The last one used is used next: it is the least likely to be dead, and surplus ones grow old together.
  const idle: HttpConnection[] = []
  // In order of arrival.
  const waiting = new Set<HttpExchange>()
  let connecting = 0
  let resolving = 0
  let busy = 0
  /** As of the last sweep: near enough for how long a connection may idle. */
  let sweptMs = clock.monotonicMs()
  let isClosed = false

  const events: HttpConnectionEvents = {
    onReady(connection) {
      connecting -= 1
      giveWork(connection)
    },
    onIdle(connection, idleHintMs) {
      busy -= 1
      const hintMs = idleHintMs === undefined ? Number.POSITIVE_INFINITY : idleHintMs - IDLE_HINT_MARGIN_MS
      connection.idleUntilMs = sweptMs + Math.min(options.idleMs, hintMs)
      if (hintMs <= 0 && waiting.size === 0) connection.cut('closed', 'not kept')
      else giveWork(connection)
    },
    onGone(connection, { was, message }) {
      connections.delete(connection)
      if (was === 'busy') busy -= 1
      else if (was === 'idle') forget(connection)
      else {
        connecting -= 1
        address.lost('unreachable')
        failOldest('connect', message)
      }
      openForWaiting()
    },
  }

  function forget(connection: HttpConnection): void {
    const at = idle.indexOf(connection)
    if (at !== -1) idle.splice(at, 1)
  }

  function giveWork(connection: HttpConnection): void {
    for (const exchange of waiting) {
      waiting.delete(exchange)
      busy += 1
      connection.send(exchange)
      return
    }
    if (connection.idleUntilMs === Number.POSITIVE_INFINITY)
      connection.idleUntilMs = clock.monotonicMs() + options.idleMs
    idle.push(connection)
  }

  /** As many connections under way as calls wait, within the maximum. */
  function openForWaiting(): void {
    while (!isClosed && connecting < waiting.size && connections.size + resolving < options.connectionsMax) open()
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
      if (!outcome.ok) failOldest(outcome.reason === 'refused' ? 'address' : 'connect', outcome.message)
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

  /** An attempt to connect was made for one call; when it fails, one call has failed. */
  function failOldest(cause: HttpCause, message: string): void {
    for (const exchange of waiting) {
      waiting.delete(exchange)
      exchange.fail('not-sent', cause, message)
      return
    }
  }

  const sweep = clock.setRepeating(SWEEP_MS, () => {
    const nowMs = clock.monotonicMs()
    sweptMs = nowMs
    for (const exchange of waiting) {
      if (exchange.deadlineAtMs > nowMs) continue
      waiting.delete(exchange)
      exchange.fail('not-sent', 'deadline', 'no connection in time')
    }
    for (const connection of connections) {
      const { exchange } = connection
      if (exchange !== undefined) {
        if (exchange.deadlineAtMs <= nowMs) connection.cut('deadline', 'no answer in time')
      } else if (connection.isConnecting) {
        if (nowMs - connection.openedAtMs >= options.connectTimeoutMs)
          connection.cut('connect', 'no connection in time')
      } else if (connection.idleUntilMs <= nowMs) connection.cut('closed', 'idle')
    }
  })
  sweep.unref?.()

  return {
    call({ body, bodyBytes = Buffer.byteLength(body), deadlineMs, nowMs = clock.monotonicMs() }, done) {
      const exchange = new HttpExchange({ body, bodyBytes, deadlineAtMs: nowMs + deadlineMs }, { options, clock, done })
      const connection = isClosed ? undefined : idle.pop()
      if (connection !== undefined) {
        busy += 1
        connection.send(exchange)
      } else if (isClosed) {
        queueMicrotask(() => exchange.fail('not-sent', 'closed', 'the pool is closed'))
      } else if (waiting.size >= options.waitingMax) {
        queueMicrotask(() => exchange.fail('not-sent', 'busy', `${options.waitingMax} calls wait for a connection`))
      } else {
        waiting.add(exchange)
        openForWaiting()
      }
      return {
        abort() {
          if (exchange.isOver) return
          if (waiting.delete(exchange)) exchange.fail('not-sent', 'aborted', 'aborted')
          else exchange.carrier?.cut('aborted', 'aborted')
        },
      }
    },
    get inFlight() {
      return busy + waiting.size
    },
    get connections() {
      return connections.size
    },
    [Symbol.dispose]() {
      isClosed = true
      sweep.cancel()
      for (const exchange of [...waiting]) {
        waiting.delete(exchange)
        exchange.fail('not-sent', 'closed', 'the pool is closed')
      }
      for (const connection of [...connections]) connection.cut('closed', 'the pool is closed')
    },
  }
}

/** Everything before the value of Content-Length, made once. */
function requestHead(address: PinnedAddress, headers: Readonly<Record<string, string>>): string {
  for (const [name, value] of Object.entries(headers)) {
    // The value may be a credential, so the message does not show it.
    assert(
      /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name) && /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(value),
      `${name} is no header`,
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
