import { connect, type Socket } from 'node:net'
import type { Clock, Timer } from '../../core/clock.ts'
import { messageOf, ServiceError } from '../../core/error.ts'
import { systemClock } from './clock.ts'
import { socketPath } from './control-path.ts'
import { CONTROL_VERSION, type ControlProtocol } from './control-socket.ts'
import { readLines } from './line-reader.ts'

/** Calls to a process that offers `Protocol`. */
export type ControlClient<Protocol extends ControlProtocol> = Disposable & {
  /** Sends one request and returns the result. */
  call<Name extends keyof Protocol & string>(
    method: Name,
    ...params: Parameters<Protocol[Name]>
  ): Promise<ReturnType<Protocol[Name]>>
  /** Yields the items of a stream until the process ends it or the reader stops. */
  stream<Name extends keyof Protocol & string>(
    method: Name,
    ...params: Parameters<Protocol[Name]>
  ): AsyncIterable<ItemOf<ReturnType<Protocol[Name]>>>
}

type ItemOf<Stream> = Stream extends AsyncIterable<infer Item> ? Item : never

const LINE_BYTES_MAX = 16 * 1024 * 1024
const RESPONSE_MS_MAX = 10_000
/** Items buffered for a slow reader before the socket is paused. */
const ITEMS_AHEAD = 256

type Message = { id?: unknown; result?: unknown; item?: unknown; end?: unknown; error?: unknown }
type Call = { onMessage(message: Message): void; onGone(error: ServiceError): void }

/** Connects to the control socket of a running process. */
export async function openControlClient<Protocol extends ControlProtocol>(
  path: string,
  deps: { clock?: Clock; responseMsMax?: number } = {},
): Promise<ControlClient<Protocol>> {
  const { clock = systemClock, responseMsMax = RESPONSE_MS_MAX } = deps
  const socket = await connectTo(path)
  const calls = new Map<number, Call>()
  let lastId = 0
  let gone: ServiceError | undefined

  function end(error: ServiceError): void {
    gone ??= error
    for (const call of calls.values()) call.onGone(gone)
    calls.clear()
  }
  socket.once('close', () => end(unavailable(path, 'the process closed the connection')))
  socket.on('error', () => {})
  readLines(
    socket,
    { lineBytesMax: LINE_BYTES_MAX },
    {
      onLine(line) {
        const message = JSON.parse(line) as Message
        calls.get(Number(message.id))?.onMessage(message)
      },
      onTooLong: () => void socket.destroy(),
    },
  )

  function send(method: string, params: unknown, call: Call): number {
    const id = ++lastId
    if (gone) call.onGone(gone)
    else {
      calls.set(id, call)
      socket.write(`${JSON.stringify({ v: CONTROL_VERSION, id, method, params: params ?? {} })}\n`)
    }
    return id
  }

  return {
    call(method, ...[params]) {
      return new Promise((resolve, reject) => {
        const timer: Timer = clock.setTimer(responseMsMax, () => {
          calls.delete(id)
          reject(unavailable(path, `no response to ${method} within ${responseMsMax} ms`))
        })
        const id = send(method, params, {
          onMessage(message) {
            timer.cancel()
            calls.delete(id)
            if (message.error === undefined) resolve(message.result as never)
            else reject(errorFrom(message.error))
          },
          onGone(error) {
            timer.cancel()
            reject(error)
          },
        })
      })
    },

    async *stream(method, ...[params]) {
      const items: unknown[] = []
      let finished = false
      let failure: ServiceError | undefined
      let wake = () => {}
      const id = send(method, params, {
        onMessage(message) {
          if (message.error !== undefined) failure = errorFrom(message.error)
          else if (message.end === true || message.result !== undefined) finished = true
          else items.push(message.item)
          if (items.length >= ITEMS_AHEAD) socket.pause()
          wake()
        },
        onGone(error) {
          failure ??= error
          wake()
        },
      })
      try {
        while (true) {
          while (items.length > 0) yield items.shift() as never
          if (failure) throw failure
          if (finished) return
          socket.resume()
          await new Promise<void>((resolve) => {
            wake = resolve
            if (items.length > 0 || failure || finished) resolve()
          })
        }
      } finally {
        calls.delete(id)
        // The only way to end a stream early is to leave.
        if (finished || failure) socket.resume()
        else socket.destroy()
      }
    },
    [Symbol.dispose]() {
      socket.destroy()
    },
  }
}

function connectTo(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    try {
      using address = socketPath(path)
      const socket = connect(address.path)
      const onError = (error: Error) => reject(unavailable(path, messageOf(error), error))
      socket.once('error', onError)
      socket.once('connect', () => {
        socket.off('error', onError)
        resolve(socket)
      })
    } catch (error) {
      reject(unavailable(path, messageOf(error), error))
    }
  })
}

function unavailable(path: string, why: string, cause?: unknown): ServiceError {
  return new ServiceError('control-unavailable', `no running Sluice responds at ${path}: ${why}`, {
    fields: { path },
    fix: 'Start it (sluice serve), or name the state folder it runs on with --state.',
    cause,
  })
}

function errorFrom(error: unknown): ServiceError {
  const { code, message, fix } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  const text = (value: unknown, otherwise: string) => (typeof value === 'string' ? value : otherwise)
  const options = typeof fix === 'string' ? { fix } : {}
  return new ServiceError(text(code, 'internal'), text(message, 'the call failed'), options)
}
