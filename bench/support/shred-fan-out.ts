import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { ThreadPriority } from '../../src/platform/native/thread-schedule.ts'
import type { UdpEngine } from '../../src/platform/udp/port.ts'
import { blockPackets } from '../../test/support/shreds/rig.ts'

/** The program under test: the C program, or the relay in one of its modes. */
export type Variant = keyof typeof C_ARGUMENTS | RelayVariant

/** Its arguments JOIN and HASH. */
const C_ARGUMENTS = { c: [0, 0], 'c joined': [1, 0], 'c hashing': [0, 1] } as const

export type RelayVariant = {
  readonly engine?: UdpEngine
  readonly signatures?: boolean
  /** The checkout of another version of the relay. Its process stays on the first core, since it may have no checking thread. */
  readonly checkout?: string
}

export type PacketFile = { readonly path: string; readonly isSigned: boolean }

export type Programs = {
  readonly fanOut: string
  readonly load: string
  /** Priority of the C program and of the relay; the load gets a raised one unless it is normal. Other programs on the machine then disturb neither. */
  readonly priority: ThreadPriority
}

/** The commands that start a program with a priority. */
const WITH_PRIORITY = { normal: [], raised: ['nice', '-n', '-10'], realtime: ['chrt', '-f', '2'] } as const

/** Packets in and out so far at a time of the program's clock, and its CPU time. */
type Sample = {
  readonly ms: number
  /** CPU of the thread that relays. */
  readonly cpuMs: number
  /** CPU of all other threads: the one that checks signatures, the main thread, V8's helpers. */
  readonly otherCpuMs?: number
  readonly in: number
  readonly out: number
}

export type FanOutRun = {
  /** Outgoing packets per second under overload. */
  readonly perSecond: number
  readonly perCpuSecond: number
  /** CPU microseconds per incoming packet, of the thread that relays and of the other threads. */
  readonly cpuMicrosIn: number
  readonly otherCpuMicrosIn: number
  readonly out: number
}

/** Microseconds. */
export type Percentiles = { readonly p50: number; readonly p99: number; readonly p999: number }

export type Load = Percentiles & {
  readonly sent: number
  readonly seconds: number
  readonly measured: number
  /** Latencies of the packets of the first two seconds, and of the others. */
  readonly first: Percentiles
  readonly later: Percentiles
}

export type LoadOptions = {
  readonly file: PacketFile
  /** Packets per second; 0 is as fast as possible. */
  readonly rate: number
  readonly seconds: number
  readonly destinations: number
  readonly isLatency?: boolean
}

/**
 * Starts and ends the programs of the bench: the fan-out on the first core, load and destinations on the second. With signature checks the thread that
 * relays stays on the first core; the checking thread may use both, so it takes some of the load's time.
 */
export type FanOutBench = Disposable & {
  run(variant: Variant, load: LoadOptions): Promise<{ readonly run: FanOutRun; readonly load: Load }>
  /** Sends the load directly to the destination. */
  runDirect(load: LoadOptions): Promise<Load>
}

type Started = {
  readonly child: ChildProcess
  /** Complete lines printed so far. */
  readonly lines: () => string[]
  readonly ended: Promise<unknown>
}

const DESTINATIONS_MAX = 50
/** Below the ephemeral ports, so that a sender's socket never takes a destination's port. */
const PORTS_FROM = 22_000
const PORTS_TO = 32_000
const START_MS = 15_000
const END_MS = 3000

export async function openFanOutBench(programs: Programs): Promise<FanOutBench> {
  const port = await findPorts(DESTINATIONS_MAX + 1)
  const firstPort = port + 1
  const { priority } = programs
  const children = new Set<ChildProcess>()

  function start(cores: string, words: readonly string[]): Started {
    const [program = '', ...rest] = availableParallelism() > 1 ? ['taskset', '-c', cores, ...words] : words
    // A child ends when its standard input closes.
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] })
    children.add(child)
    let message = ''
    child.stdout?.on('data', (chunk: Buffer) => (message += chunk.toString()))
    const ended = once(child, 'close').finally(() => children.delete(child))
    return { child, lines: () => message.split('\n').slice(0, -1), ended }
  }

  function startRelay({ engine = 'sendmmsg', signatures = false, checkout }: RelayVariant, n: number) {
    const isOnBoth = signatures && checkout === undefined
    const folder = checkout === undefined ? import.meta.dirname : join(checkout, 'bench', 'support')
    const words = [port, n, firstPort, engine, signatures ? 'on' : 'off', priority, '0'].map(String)
    const program = [process.execPath, join(folder, 'shred-relay-process.ts'), ...words]
    return start(isOnBoth ? '0,1' : '0', program)
  }

  async function startFanOut(variant: Variant, n: number) {
    const started =
      typeof variant === 'string'
        ? start(
            '0',
            [...WITH_PRIORITY[priority], programs.fanOut, port, n, firstPort, ...C_ARGUMENTS[variant]].map(String),
          )
        : startRelay(variant, n)
    const deadlineMs = performance.now() + START_MS
    while (!started.lines().includes('ready')) {
      const isOver = started.child.exitCode !== null || performance.now() > deadlineMs
      if (isOver) throw new Error('the fan-out program did not start')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    // Another version may not have the option. Node does not start with real-time priority on one core.
    const isOther = typeof variant === 'object' && variant.checkout !== undefined
    if (isOther && priority === 'realtime') spawnSync('chrt', ['-a', '-f', '-p', '2', String(started.child.pid)])
    return started
  }

  function startLoad(to: number, { file, rate, seconds, destinations, isLatency }: LoadOptions): Started {
    const words = [file.path, to, rate, seconds, destinations, firstPort, file.isSigned ? 0 : 1, isLatency ? 1 : 0]
    return start('1', [
      ...WITH_PRIORITY[priority === 'normal' ? 'normal' : 'raised'],
      programs.load,
      ...words.map(String),
    ])
  }

  /** The load's final report. It keeps its ports open until its input ends: a closed port would cause ICMP errors for packets in flight. */
  async function resultOf({ child, lines, ended }: Started): Promise<Load> {
    await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended])
    const [line] = lines()
    if (line === undefined) throw new Error('the load ended without a report')
    return JSON.parse(line) as Load
  }

  return {
    async run(variant, options) {
      const { child, lines, ended } = await startFanOut(variant, options.destinations)
      const loading = startLoad(port, options)
      const load = await resultOf(loading)
      child.kill('SIGTERM')
      const cut = setTimeout(() => child.kill('SIGKILL'), END_MS)
      await ended
      clearTimeout(cut)
      loading.child.stdin?.end()
      await loading.ended
      const samples = lines()
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Sample)
      const out = samples.at(-1)?.out ?? 0
      return { load, run: { out, ...steadyRates(samples) } }
    },
    async runDirect(options) {
      const loading = startLoad(firstPort + options.destinations - 1, options)
      const load = await resultOf(loading)
      loading.child.stdin?.end()
      await loading.ended
      return load
    },
    [Symbol.dispose]() {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

/**
 * Outgoing packets per second between the first and the last sample with incoming packets. Packets left in the socket buffer when the load ends
 * are not counted, nor their time: a short load would otherwise seem to be handled faster. The start is not counted either.
 */
function steadyRates(samples: readonly Sample[]): Omit<FanOutRun, 'out'> {
  const busy = samples.filter(({ in: received }, at) => received > (samples[at - 1]?.in ?? 0))
  const [first, last] = [busy[0], busy.at(-2)]
  if (first === undefined || last === undefined || last.ms <= first.ms)
    return { perSecond: 0, perCpuSecond: 0, cpuMicrosIn: 0, otherCpuMicrosIn: 0 }
  const out = (last.out - first.out) * 1000
  const received = last.in - first.in
  const cpuMs = last.cpuMs - first.cpuMs
  return {
    perSecond: out / (last.ms - first.ms),
    perCpuSecond: out / cpuMs,
    cpuMicrosIn: (cpuMs * 1000) / received,
    otherCpuMicrosIn: (((last.otherCpuMs ?? 0) - (first.otherCpuMs ?? 0)) * 1000) / received,
  }
}

/** The first of `count` consecutive free UDP ports. */
async function findPorts(count: number): Promise<number> {
  for (let first = PORTS_FROM; first + count <= PORTS_TO; first += count) {
    if (await areFree(first, count)) return first
  }
  throw new Error(`no ${count} free UDP ports in a row between ${PORTS_FROM} and ${PORTS_TO}`)
}

async function areFree(first: number, count: number): Promise<boolean> {
  const sockets = Array.from({ length: count }, () => createSocket('udp4'))
  try {
    for (const [at, socket] of sockets.entries()) {
      socket.bind({ port: first + at, address: '127.0.0.1', exclusive: true })
      await once(socket, 'listening')
    }
    return true
  } catch {
    return false
  } finally {
    for (const socket of sockets) socket.close()
  }
}

/** Blocks of complete FEC sets as records of a length and a packet. Packets of several slots are signed and sent once. */
export function writePackets(path: string, slots: number, setsPerSlot: number): PacketFile {
  const records: Buffer[] = []
  for (let slot = 1000; slot < 1000 + slots; slot++) {
    for (const packet of blockPackets(slot, { sets: setsPerSlot })) {
      const length = Buffer.alloc(2)
      length.writeUInt16LE(packet.length)
      records.push(length, Buffer.from(packet))
    }
  }
  writeFileSync(path, Buffer.concat(records))
  return { path, isSigned: slots > 1 }
}

export function compile(folder: string, name: string): string {
  const source = join(import.meta.dirname, '..', 'reference', `${name}.c`)
  const target = join(folder, name)
  const { status, stderr } = spawnSync('gcc', ['-O2', '-o', target, source], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`gcc: ${stderr}`)
  return target
}
