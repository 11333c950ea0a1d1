import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export type PacedLoad = {
  readonly port: number
  readonly token: string
  readonly body: string
  readonly connections: number
}

export type Latencies = { readonly p50Ms: number; readonly p99Ms: number; readonly calls: number }

export type PacedCaller = Disposable & {
  /** Open-loop calls at this rate; each latency is measured from the scheduled time, so that a pause is not hidden. */
  run(perSecond: number, seconds: number): Promise<Latencies>
}

export type AddedLatency = {
  readonly direct: Latencies
  readonly through: Latencies
  readonly addedP50Ms: number
  readonly addedP99Ms: number
  /** The smallest and the largest difference in a pair of intervals. */
  readonly addedP99RangeMs: readonly [number, number]
}

const WARM_LOOK_MS = 1
/** Polling interval. Timers have a resolution of one millisecond and would send ten or more calls at once. */
const NAP_MS = 0.05
/** Long enough for a p99, short enough that both sides see the same machine load. */
const TURN_SECONDS = 0.5

/**
 * The latency that a proxy adds. Proxied and direct load alternate in intervals of half a second over persistent connections, and the figure is
 * the median over the pairs: other load on the machine affects both alike, and one pause affects one pair.
 */
export async function addedLatency(
  direct: PacedLoad,
  through: PacedLoad,
  { perSecond, pairs }: { perSecond: number; pairs: number },
): Promise<AddedLatency> {
  using without = await openPaced(direct)
  using within = await openPaced(through)
  const turns: { direct: Latencies; through: Latencies }[] = []
  // The first pair is a warm-up and does not count.
  for (let pair = 0; pair <= pairs; pair++) {
    // The first of a pair influences the second, so the order alternates.
    const isDirectFirst = pair % 2 === 0
    const first = await (isDirectFirst ? without : within).run(perSecond, TURN_SECONDS)
    const second = await (isDirectFirst ? within : without).run(perSecond, TURN_SECONDS)
    if (pair > 0) turns.push(isDirectFirst ? { direct: first, through: second } : { direct: second, through: first })
  }
  const side = (name: 'direct' | 'through'): Latencies => ({
    p50Ms: medianOf(turns.map((turn) => turn[name].p50Ms)),
    p99Ms: medianOf(turns.map((turn) => turn[name].p99Ms)),
    calls: turns.reduce((sum, turn) => sum + turn[name].calls, 0),
  })
  const added = (name: 'p50Ms' | 'p99Ms') => turns.map((turn) => round(turn.through[name] - turn.direct[name]))
  return {
    direct: side('direct'),
    through: side('through'),
    addedP50Ms: medianOf(added('p50Ms')),
    addedP99Ms: medianOf(added('p99Ms')),
    addedP99RangeMs: [Math.min(...added('p99Ms')), Math.max(...added('p99Ms'))],
  }
}

export async function openPaced({ port, token, body, connections }: PacedLoad): Promise<PacedCaller> {
  const request = Buffer.from(
    `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nx-token: ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const napping = new Int32Array(new SharedArrayBuffer(4))
  let took: number[] = []
  const idle: Socket[] = []
  const dueOn = new Map<Socket, number>()
  const waiting: number[] = []
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  for (const socket of sockets) {
    readResponses(socket, () => {
      took.push(performance.now() - (dueOn.get(socket) as number))
      const due = waiting.shift()
      if (due === undefined) idle.push(socket)
      else send(socket, due)
    })
  }

  function send(socket: Socket, dueMs: number): void {
    dueOn.set(socket, dueMs)
    socket.write(request)
  }

  // One call on each: a connection without any request is soon closed as idle.
  for (const socket of sockets) send(socket, performance.now())
  while (idle.length < sockets.length) await new Promise((resolve) => setTimeout(resolve, WARM_LOOK_MS))

  async function run(perSecond: number, seconds: number): Promise<Latencies> {
    took = []
    const startMs = performance.now()
    const total = Math.floor(perSecond * seconds)
    let sent = 0
    await new Promise<void>((resolve) => {
      const look = () => {
        const due = Math.min(total, Math.floor(((performance.now() - startMs) / 1000) * perSecond))
        for (; sent < due; sent++) {
          const dueMs = startMs + (sent / perSecond) * 1000
          const socket = idle.pop()
          if (socket === undefined) waiting.push(dueMs)
          else send(socket, dueMs)
        }
        if (took.length >= total) return resolve()
        Atomics.wait(napping, 0, 0, NAP_MS)
        setImmediate(look)
      }
      look()
    })
    const sorted = took.toSorted((a, b) => a - b)
    const at = (share: number) => round(sorted[Math.floor(sorted.length * share)] ?? 0)
    return { p50Ms: at(0.5), p99Ms: at(0.99), calls: took.length }
  }

  return {
    run,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number
}

function round(ms: number): number {
  return Number(ms.toFixed(3))
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

/** Calls back for each complete response with a content length. */
export function readResponses(socket: Socket, onResponse: () => void): void {
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
      onResponse()
    }
  })
}
