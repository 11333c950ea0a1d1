import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** JSON-RPC posts over connections that are open before the first; one at a time on each. A response without a result ends the bench. */
export type PacedPosts = Disposable & {
  /** Open loop, at a fixed rate. Returns when each was written, in unix milliseconds. */
  paced(bodies: readonly string[], perSecond: number): Promise<number[]>
  /** Closed loop, with so many in flight. Returns the seconds it took. */
  full(bodies: readonly string[], inFlight: number): Promise<number>
}

export async function openPacedPosts(url: string, connections: number): Promise<PacedPosts> {
  const { hostname, port } = new URL(url)
  const head = `POST / HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: `
  const idle: Socket[] = []
  /** Posts that found no connection, in order. */
  const waiting: ((socket: Socket) => void)[] = []
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(Number(port), hostname)))
  idle.push(...sockets)

  function free(socket: Socket): void {
    const next = waiting.shift()
    if (next === undefined) idle.push(socket)
    else next(socket)
  }

  /** `onWrite` is called just before the first byte is written. */
  async function post(body: string, onWrite?: () => void): Promise<void> {
    const socket = idle.pop() ?? (await new Promise<Socket>((resolve) => waiting.push(resolve)))
    const response = readResponse(socket)
    onWrite?.()
    socket.write(`${head}${body.length}\r\n\r\n${body}`, 'latin1')
    const text = await response
    if (!text.includes('"result"')) throw new Error(text)
    free(socket)
  }

  return {
    async paced(bodies, perSecond) {
      const sentMs: number[] = []
      const startedMs = performance.now()
      const responses: Promise<void>[] = []
      for (const [n, body] of bodies.entries()) {
        const waitMs = startedMs + (n * 1000) / perSecond - performance.now()
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
        responses.push(
          post(body, () => {
            sentMs[n] = performance.timeOrigin + performance.now()
          }),
        )
      }
      await Promise.all(responses)
      return sentMs
    },
    async full(bodies, inFlight) {
      const startedMs = performance.now()
      const left = bodies.values()
      await Promise.all(
        Array.from({ length: inFlight }, async () => {
          for (const body of left) await post(body)
        }),
      )
      return (performance.now() - startedMs) / 1000
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function open(port: number, host: string): Promise<Socket> {
  const socket = connect({ port, host }).setNoDelay(true)
  await once(socket, 'connect')
  return socket
}

/** A complete response: with a content length, or chunked. */
function readResponse(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1]
      const isComplete = length === undefined ? text.endsWith('0\r\n\r\n') : text.length >= end + 4 + Number(length)
      if (!isComplete) return
      finish()
      resolve(text.slice(end + 4))
    }
    const onClose = () => {
      finish()
      reject(new Error('the connection was closed'))
    }
    const finish = () => socket.off('data', onData).off('close', onClose)
    socket.on('data', onData).on('close', onClose)
  })
}
