import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export type PacedLoad = {
  readonly port: number
  readonly token: string
  readonly body: string
  readonly connections: number
  readonly perSecond: number
  readonly seconds: number
}

export type Latencies = { readonly p50Ms: number; readonly p99Ms: number; readonly calls: number }

const BEAT_MS = 1

/** Calls at a given rate, whatever the other side does; each one's time counts from when it was due, so that a pause is not hidden. */
export async function pacedLatencies(load: PacedLoad): Promise<Latencies> {
  const { port, token, body, connections, perSecond, seconds } = load
  const request = Buffer.from(
    `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nx-token: ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const took: number[] = []
  const idle: Socket[] = []
  const dueOn = new Map<Socket, number>()
  const waiting: number[] = []
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  for (const socket of sockets) {
    readAnswers(socket, () => {
      took.push(performance.now() - (dueOn.get(socket) as number))
      const due = waiting.shift()
      if (due === undefined) idle.push(socket)
      else send(socket, due)
    })
    idle.push(socket)
  }

  function send(socket: Socket, dueMs: number): void {
    dueOn.set(socket, dueMs)
    socket.write(request)
  }

  const startMs = performance.now()
  const total = Math.floor(perSecond * seconds)
  let sent = 0
  await new Promise<void>((resolve) => {
    const beat = setInterval(() => {
      const due = Math.min(total, Math.floor(((performance.now() - startMs) / 1000) * perSecond))
      for (; sent < due; sent++) {
        const dueMs = startMs + (sent / perSecond) * 1000
        const socket = idle.pop()
        if (socket === undefined) waiting.push(dueMs)
        else send(socket, dueMs)
      }
      if (took.length < total) return
      clearInterval(beat)
      resolve()
    }, BEAT_MS)
  })
  for (const socket of sockets) socket.destroy()
  const sorted = took.toSorted((a, b) => a - b)
  const at = (share: number) => Number((sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(3))
  return { p50Ms: at(0.5), p99Ms: at(0.99), calls: took.length }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

/** Calls back for each whole answer of known length. */
export function readAnswers(socket: Socket, onAnswer: () => void): void {
  let pending: Buffer = Buffer.alloc(0)
  let left = 0
  socket.on('data', (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    for (;;) {
      if (left === 0) {
        const end = pending.indexOf('\r\n\r\n')
        if (end === -1) return
        const head = pending.toString('latin1', 0, end)
        left = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
        if (!head.startsWith('HTTP/1.1 200')) throw new Error(head)
        pending = pending.subarray(end + 4)
      }
      if (pending.length < left) return
      pending = pending.subarray(left)
      left = 0
      onAnswer()
    }
  })
}
