import assert from 'node:assert/strict'
import { WebSocket } from 'ws'
import type { Hello, StreamFrame } from '../../../src/contract/stream-events.ts'
import { until } from '../../../src/platform/process/test-wait.ts'

/** A client of the stream on the library ws: collects all frames as text. */
export type StreamReader = AsyncDisposable & {
  readonly texts: string[]
  readonly frames: StreamFrame[]
  readonly closed: { code: number; reason: string } | undefined
  send(message: unknown): void
  /** Stops reading, so that the server has to buffer. */
  pause(): void
  resume(): void
  until(count: number): Promise<StreamFrame[]>
  untilClosed(): Promise<{ code: number; reason: string }>
}

export async function openStream(
  url: string,
  options: { headers?: Record<string, string> } = {},
): Promise<StreamReader> {
  const socket = new WebSocket(url, { headers: options.headers ?? {}, perMessageDeflate: false })
  const texts: string[] = []
  const frames: StreamFrame[] = []
  let closed: { code: number; reason: string } | undefined
  socket.on('message', (data: Buffer) => {
    const text = data.toString('utf8')
    texts.push(text)
    frames.push(JSON.parse(text) as StreamFrame)
  })
  socket.on('close', (code, reason) => {
    closed = { code, reason: reason.toString() }
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  return {
    texts,
    frames,
    get closed() {
      return closed
    },
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    async until(count) {
      await until(`${count} frames came`, () => frames.length >= count)
      return frames
    },
    async untilClosed() {
      await until('the connection was closed', () => closed !== undefined)
      return closed ?? assert.fail()
    },
    async [Symbol.asyncDispose]() {
      if (closed === undefined) socket.terminate()
      await until('the client is closed', () => closed !== undefined)
    },
  }
}

/** Status and body of a refused handshake. */
export async function refusedHandshake(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: string; headers: Record<string, unknown> }> {
  const socket = new WebSocket(url, { headers })
  return new Promise((resolve, reject) => {
    socket.once('unexpected-response', (_request, response) => {
      let body = ''
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString()
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }))
    })
    socket.once('open', () => {
      socket.terminate()
      reject(new Error('the handshake was accepted'))
    })
    socket.once('error', () => {})
  })
}

export function helloOf(client: StreamReader): Hello {
  const [first] = client.frames
  assert(first !== undefined && 'Hello' in first, 'the first frame is Hello')
  return first.Hello
}

/** The frames of a client, beginning with the first live one. */
export function liveTexts(client: StreamReader): string[] {
  return client.texts.slice(1 + helloOf(client).snapshot)
}
