import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { cpus } from 'node:os'
import { systemClock } from '../src/host/clock.ts'
import { processTimeMs } from '../src/host/worker.ts'
import { startTestExecution, statusOf, type TestExecution } from '../test/support/execution.ts'

/**
 * The execution stream to many clients, which run in a process of their own: how many frames reach them in a second and how old they
 * are then; and how long a client waits for all of a full resume buffer. Frames have about 604 bytes. One JSON line a path.
 *
 *   npx node bench/stream.ts [clients] [messages per second] [seconds] [replayed entries]
 */
const GOALS = { deliveriesPerSecond: 400_000, ageP99Ms: 50, replayMs: 500 }
const FRAME_BYTES = 604
/** Clients whose frames are read one by one, for their age; of the others only the bytes are counted. */
const PROBES = 20

if (process.argv[2] === 'clients') await runClients(Number(process.argv[3]), Number(process.argv[4]))
else {
  const [clients = 2000, perSecond = 200, seconds = 10, entries = 100_000] = process.argv.slice(2).map(Number)
  await measureFanOut({ clients, perSecond, seconds })
  await measureReplay(entries)
}

type FromClients =
  | { kind: 'ready' }
  | { kind: 'result'; frames: number; ageP50Ms: number; ageP99Ms: number; seconds: number; closed: number }

async function measureFanOut(load: { clients: number; perSecond: number; seconds: number }): Promise<void> {
  await using service = await startTestExecution({ clock: systemClock, settings: { connectionsMax: 100_000 } })
  const child = fork(import.meta.filename, ['clients', String(load.clients), String(service.execution.address.port)])
  await nextOf(child, 'ready')
  const cpu = process.cpuUsage()
  const startedMs = processTimeMs()
  let sent = 0
  const timer = setInterval(() => {
    const due = Math.floor(((processTimeMs() - startedMs) / 1000) * load.perSecond)
    for (; sent < due; sent++) publish(service)
  }, 1)
  await new Promise((resolve) => setTimeout(resolve, load.seconds * 1000))
  clearInterval(timer)
  // What was published arrives within the time that the age is allowed to have, or is late.
  await new Promise((resolve) => setTimeout(resolve, 500))
  const used = process.cpuUsage(cpu)
  child.send('report')
  const result = await nextOf(child, 'result')
  const deliveriesPerSecond = Math.round(result.frames / load.seconds)
  report({
    path: 'fan-out',
    ...load,
    published: sent,
    deliveriesPerSecond,
    goal: GOALS.deliveriesPerSecond,
    ratio: ratio(deliveriesPerSecond, GOALS.deliveriesPerSecond),
    ageP50Ms: result.ageP50Ms,
    ageP99Ms: result.ageP99Ms,
    goalAgeP99Ms: GOALS.ageP99Ms,
    dropped: service.registry.value('sluice_execution_ws_dropped_total') ?? 0,
    closed: result.closed,
    serverCpuShare: ratio(used.user + used.system, load.seconds * 1e6),
  })
  child.kill()
  await once(child, 'exit')
}

async function measureReplay(entries: number): Promise<void> {
  await using service = await startTestExecution({
    clock: systemClock,
    settings: { resume: { entriesMax: entries, bytesMax: 2 ** 30, eventsLingerMs: 0 } },
  })
  publish(service)
  const { newest_seqno: cursor } = await statusOf(service)
  for (let at = 0; at < entries; at++) publish(service)
  const times: number[] = []
  for (let round = 0; round < 5; round++) {
    const startedMs = processTimeMs()
    const socket = open(service.execution.address.port, `/v1/ws?subscribe=TopAccesses&resume_from=${cursor}`)
    let frames = -1
    await new Promise<void>((resolve) => {
      readFrames(socket, () => {
        frames += 1
        if (frames === entries) resolve()
      })
    })
    times.push(processTimeMs() - startedMs)
    socket.destroy()
  }
  times.sort((a, b) => a - b)
  const replayMs = Math.round(times[2] as number)
  report({ path: 'replay', entries, replayMs, goalMs: GOALS.replayMs, ratio: ratio(replayMs, GOALS.replayMs) })
}

/** The time of publishing rides in the frame, as text of a fixed length. */
function publish(service: TestExecution): void {
  const t = processTimeMs().toFixed(2).padStart(20)
  const data = { account: [], storage: [], t, fill: 'x'.repeat(FRAME_BYTES - 97) }
  service.source.tell({ kind: 'top-accesses', data })
}

async function runClients(count: number, port: number): Promise<void> {
  const ages: number[] = []
  const sockets: Socket[] = []
  let bytes = 0
  let frames = 0
  let frameBytes = 0
  let closed = 0
  for (let at = 0; at < count; at++) {
    const socket = open(port, '/v1/ws?subscribe=TopAccesses')
    sockets.push(socket)
    const isProbe = at % Math.max(1, Math.floor(count / PROBES)) === 0
    await new Promise<void>((resolve) => {
      let isGreeted = false
      const greet = (): void => {
        isGreeted = true
        resolve()
      }
      if (isProbe) {
        readFrames(socket, (textOf, size) => {
          if (!isGreeted) return greet()
          frames += 1
          frameBytes = size
          ages.push(processTimeMs() - Number(/"t":"([ \d.]+)"/.exec(textOf())?.[1] ?? 0))
        })
      } else {
        // Head and Hello come in one piece or several; frames begin after them.
        let greeting = Buffer.alloc(0)
        socket.on('data', (chunk: Buffer) => {
          if (isGreeted) {
            bytes += chunk.length
            return
          }
          greeting = Buffer.concat([greeting, chunk])
          const body = greeting.indexOf('\r\n\r\n') + 4
          if (body > 3 && greeting.length >= body + 4 && greeting.length >= body + 4 + greeting.readUInt16BE(body + 2))
            greet()
        })
      }
    })
    socket.on('close', () => (closed += 1))
  }
  const startedMs = processTimeMs()
  process.send?.({ kind: 'ready' } satisfies FromClients)
  process.on('message', () => {
    ages.sort((a, b) => a - b)
    const at = (share: number): number => Number((ages[Math.floor(ages.length * share)] ?? 0).toFixed(1))
    const result: FromClients = {
      kind: 'result',
      frames: frames + Math.floor(bytes / frameBytes),
      ageP50Ms: at(0.5),
      ageP99Ms: at(0.99),
      seconds: (processTimeMs() - startedMs) / 1000,
      closed,
    }
    process.send?.(result)
  })
}

function open(port: number, path: string): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  )
  return socket
}

/** Every text frame after the head of the answer. */
function readFrames(socket: Socket, onFrame: (textOf: () => string, frameBytes: number) => void): void {
  let rest: Buffer = Buffer.alloc(0)
  let isOpen = false
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    if (!isOpen) {
      const end = rest.indexOf('\r\n\r\n')
      if (end === -1) return
      isOpen = true
      rest = rest.subarray(end + 4)
    }
    let at = 0
    for (;;) {
      if (rest.length - at < 4) break
      const short = (rest[at + 1] as number) & 0x7f
      const head = short < 126 ? 2 : 4
      const length = short < 126 ? short : rest.readUInt16BE(at + 2)
      if (rest.length - at < head + length) break
      const [bytes, from] = [rest, at + head]
      onFrame(() => bytes.toString('latin1', from, from + length), head + length)
      at += head + length
    }
    rest = rest.subarray(at)
  })
}

async function nextOf<Kind extends FromClients['kind']>(
  child: ChildProcess,
  kind: Kind,
): Promise<FromClients & { kind: Kind }> {
  for (;;) {
    const [message] = (await once(child, 'message')) as [FromClients]
    if (message.kind === kind) return message as FromClients & { kind: Kind }
  }
}

function ratio(value: number, of: number): number {
  return Number((value / of).toFixed(2))
}

function report(figures: Record<string, unknown>): void {
  console.log(JSON.stringify({ bench: 'stream', ...figures, cores: cpus().length, node: process.version }))
}
