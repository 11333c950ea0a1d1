import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/platform/process/clock.ts'
import { processTimeMs } from '../src/platform/process/worker.ts'
import { startTestExecution, statusOf, type TestExecution } from '../test/support/execution/start.ts'
import { compileC } from './support/compile-c.ts'
import { pinSelf } from './support/pinned-process.ts'
import { startWsReaders } from './support/ws-readers.ts'

/**
 * The execution stream to many clients, a small C program on the other core: frames delivered per second and their age; and the time
 * to replay a full resume buffer to a client. Frames have about 604 bytes. One JSON line per path.
 *
 *   npx node bench/stream.ts [clients] [messages per second] [seconds] [replayed entries]
 */
const GOALS = { deliveriesPerSecond: 400_000, ageP99Ms: 50, replayMs: 500 }
const FRAME_BYTES = 604
const SERVICE_CORE = 0
const CLIENTS_CORE = 1
const WARM_MS = 1000

// Slightly above the goal: the offered rate bounds the deliveries.
const [clients = 2000, perSecond = 204, seconds = 10, entries = 100_000] = process.argv.slice(2).map(Number)
const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-stream-'))
try {
  await measureFanOut({ clients, perSecond, seconds }, compileC(folder, 'ws-readers'))
  await measureReplay(entries)
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function measureFanOut(
  load: { clients: number; perSecond: number; seconds: number },
  program: string,
): Promise<void> {
  pinSelf(SERVICE_CORE)
  await using service = await startTestExecution({ clock: systemClock, settings: { connectionsMax: 100_000 } })
  await using readers = await startWsReaders({
    program,
    core: CLIENTS_CORE,
    port: service.execution.address.port,
    path: '/v1/ws?subscribe=TopAccesses',
    clients: load.clients,
    measureMs: load.seconds * 1000,
  })
  const startedMs = processTimeMs()
  let sent = 0
  const timer = setInterval(() => {
    const due = Math.floor(((processTimeMs() - startedMs) / 1000) * load.perSecond)
    for (; sent < due; sent++) publish(service)
  }, 1)
  await new Promise((resolve) => setTimeout(resolve, WARM_MS))
  const cpu = process.cpuUsage()
  const counted = await readers.measure()
  const used = process.cpuUsage(cpu)
  clearInterval(timer)
  const deliveriesPerSecond = Math.round(counted.messages / counted.seconds)
  report({
    path: 'fan-out',
    ...load,
    deliveriesPerSecond,
    goal: GOALS.deliveriesPerSecond,
    ratio: ratio(deliveriesPerSecond, GOALS.deliveriesPerSecond),
    ageP50Ms: counted.ageP50Ms,
    ageP99Ms: counted.ageP99Ms,
    goalAgeP99Ms: GOALS.ageP99Ms,
    dropped: service.registry.value('sluice_execution_ws_dropped_total') ?? 0,
    closed: counted.closed,
    cpuMicrosPerDelivery: ratio(used.user + used.system, counted.messages),
    readerCorePercent: Math.round(counted.cpuMs / counted.seconds / 10),
  })
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

/** The frame contains its publishing time as fixed-length text, from a clock that the clients read too. */
function publish(service: TestExecution): void {
  const t = (Number(process.hrtime.bigint()) / 1e6).toFixed(2).padStart(20)
  const data = { account: [], storage: [], t, fill: 'x'.repeat(FRAME_BYTES - 97) }
  service.source.report({ kind: 'top-accesses', data })
}

function open(port: number, path: string): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  )
  return socket
}

/** Reads every text frame after the response headers. */
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

function ratio(value: number, of: number): number {
  return Number((value / of).toFixed(2))
}

function report(figures: Record<string, unknown>): void {
  console.log(JSON.stringify({ bench: 'stream', ...figures, cores: cpus().length, node: process.version }))
}
