import { chmodSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { messageOf, ServiceError } from '../../core/error.ts'
import type { Logger } from '../telemetry/logger.ts'
import { socketPath } from './control-path.ts'
import { readLines } from './line-reader.ts'

/**
 * The protocol between the command line and a running process: lines of JSON on a unix socket of mode 0600 inside the 0700
 * state folder, so that no other user can reach it.
 *
 *   → {"v":1,"id":1,"method":"status","params":{…}}
 *   ← {"v":1,"id":1,"result":…}                       one response
 *   ← {"v":1,"id":1,"item":…} … {"v":1,"id":1,"end":true}   a stream
 *   ← {"v":1,"id":1,"error":{"code","message","fix"}}
 *
 * Closing the connection cancels its calls.
 */
export const CONTROL_VERSION = 1

export type ControlContext = { signal: AbortSignal }
/** What a process offers. A method takes at most one value, and returns a value or an async iterable, whose values are sent one by one. */
export type ControlProtocol = Readonly<Record<string, (params: never) => unknown>>
/** How it is implemented: a method may take its time. */
export type ControlMethods<Protocol extends ControlProtocol = ControlProtocol> = {
  readonly [Name in keyof Protocol]: (
    params: Parameters<Protocol[Name]>[0],
    context: ControlContext,
  ) => ReturnType<Protocol[Name]> | Promise<ReturnType<Protocol[Name]>>
}

export type ControlSocket = AsyncDisposable & { readonly path: string }

const CONNECTIONS_MAX = 64
const CALLS_PER_CONNECTION_MAX = 16
const LINE_BYTES_MAX = 256 * 1024
/** A connection with more unread bytes is closed; the command line can call again. */
const PENDING_BYTES_MAX = 8 * 1024 * 1024

/** The caller holds the instance lock, so an existing socket file is stale and is replaced. */
export async function openControlSocket(
  path: string,
  deps: { log: Logger; methods: ControlMethods },
): Promise<ControlSocket> {
  const { log, methods } = deps
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    if (sockets.size >= CONNECTIONS_MAX) {
      socket.destroy()
      return
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', (error) => log.debug({ err: error }, 'control connection failed'))
    serve(socket, methods, log)
  })

  await unlink(path).catch(() => {})
  using bound = socketPath(path)
  await new Promise<void>((resolve, reject) => {
    const onListenError = (error: Error) => reject(unavailable(path, error))
    server.once('error', onListenError)
    // The folder is closed to other users already; the mode is a second protection.
    server.listen(bound.path, () => {
      chmodSync(path, 0o600)
      server.off('error', onListenError)
      // Such as too many open files. The server goes on listening, and without a listener every such event would end the process.
      server.on('error', (error) => log.warn({ err: error }, 'control connection cannot be accepted'))
      resolve()
    })
  })
  return {
    path,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
      await unlink(path).catch(() => {})
    },
  }
}

function serve(socket: Socket, methods: ControlMethods, log: Logger): void {
  const gone = new AbortController()
  let calls = 0
  socket.once('close', () => gone.abort())

  function send(message: object): void {
    if (socket.destroyed) return
    socket.write(`${JSON.stringify({ v: CONTROL_VERSION, ...message })}\n`)
    if (socket.writableLength > PENDING_BYTES_MAX) {
      log.warn({ bytes: socket.writableLength }, 'control connection reads too slowly and is closed')
      socket.destroy()
    }
  }

  async function respond(line: string): Promise<void> {
    const request = parseRequest(line)
    if (!request) {
      send({
        id: null,
        error: { code: 'bad-request', message: 'a control request is one JSON object with v, id and method' },
      })
      return
    }
    const { id, method, params } = request
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (!run) {
      send({ id, error: { code: 'bad-request', message: `this process does not know the control method ${method}` } })
      return
    }
    const result = await run(params as never, { signal: gone.signal })
    if (!isStream(result)) {
      send({ id, result: result ?? null })
      return
    }
    for await (const item of result) {
      if (gone.signal.aborted) return
      send({ id, item })
      if (socket.writableNeedDrain) await drained(socket)
    }
    send({ id, end: true })
  }

  readLines(
    socket,
    { lineBytesMax: LINE_BYTES_MAX },
    {
      onLine(line) {
        if (calls >= CALLS_PER_CONNECTION_MAX) {
          send({
            id: parseRequest(line)?.id ?? null,
            error: { code: 'busy', message: 'too many calls on one connection' },
          })
          return
        }
        calls += 1
        respond(line)
          .catch((error: unknown) => {
            // The caller gets the full error, so the log needs no stack.
            const why = error instanceof ServiceError ? { code: error.code } : { err: error }
            if (!gone.signal.aborted) log.warn(why, 'control call refused')
            send({ id: parseRequest(line)?.id ?? null, error: errorBody(error) })
          })
          .finally(() => {
            calls -= 1
          })
      },
      onTooLong() {
        send({ id: null, error: { code: 'bad-request', message: `a line is at most ${LINE_BYTES_MAX} bytes` } })
        socket.end()
      },
    },
  )
}

type Request = { id: number | string; method: string; params: unknown }

function parseRequest(line: string): Request | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { v, id, method, params } = value as Record<string, unknown>
  if (v !== CONTROL_VERSION || typeof method !== 'string' || (typeof id !== 'number' && typeof id !== 'string')) {
    return undefined
  }
  return { id, method, params: params ?? {} }
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off('drain', done).off('close', done)
      resolve()
    }
    socket.on('drain', done).on('close', done)
  })
}

function errorBody(error: unknown): object {
  if (error instanceof ServiceError) return error.toJSON()
  return { code: 'internal', message: messageOf(error) }
}

function unavailable(path: string, error: Error): ServiceError {
  return new ServiceError('control-unavailable', `control socket ${path} cannot be opened: ${messageOf(error)}`, {
    fields: { path },
    fix: 'Put the state folder on a local file system that the service user may write.',
    cause: error,
  })
}
