import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { UdpEngine } from '../../src/platform/udp/port.ts'
import { blockPackets } from '../../test/support/shreds.ts'

/** What fans out: the C program, or the relay in one of its ways. */
export type Variant = 'c' | 'c joined' | { readonly engine?: UdpEngine; readonly signatures?: boolean }

export type PacketFile = { readonly path: string; readonly isSigned: boolean }

export type Programs = { readonly fanOut: string; readonly load: string }

/** Packets in and out so far, at one moment of the program's own clock, and the processor's time it has used. */
type Sample = { readonly ms: number; readonly cpuMs: number; readonly in: number; readonly out: number }

export type FanOutRun = {
  /** Packets out a second while there was more to do than it could. */
  readonly perSecond: number
  readonly perCpuSecond: number
  readonly out: number
}

export type Load = {
  readonly sent: number
  readonly seconds: number
  readonly measured: number
  readonly p50: number
  readonly p99: number
}

export type LoadOptions = {
  readonly file: PacketFile
  /** Packets a second; 0 is as fast as possible. */
  readonly rate: number
  readonly seconds: number
  readonly destinations: number
  readonly isLatency?: boolean
}

/** Starts the programs of the bench, each on its core, and ends them: the fan-out on the first, load and destinations on the second. */
export type FanOutRig = Disposable & {
  run(variant: Variant, load: LoadOptions): Promise<{ readonly run: FanOutRun; readonly load: Load }>
  /** The load straight to the destination, with nothing between. */
  runDirect(load: LoadOptions): Promise<Load>
}

type Started = {
  readonly child: ChildProcess
  /** Whole lines it has said. */
  readonly lines: () => string[]
  readonly ended: Promise<unknown>
}

const DESTINATIONS_MAX = 50
/** Below the ports that the system gives to sockets without one, so that a sender's own socket never takes a destination's. */
const PORTS_FROM = 22_000
const PORTS_TO = 32_000
const START_MS = 15_000
const END_MS = 3000

export async function openFanOutRig(programs: Programs): Promise<FanOutRig> {
  const port = await findPorts(DESTINATIONS_MAX + 1)
  const firstPort = port + 1
  const children = new Set<ChildProcess>()

  function start(core: number, words: readonly string[]): Started {
    const [program = '', ...rest] = availableParallelism() > 1 ? ['taskset', '-c', String(core), ...words] : words
    // A child whose standard input ends has lost its parent.
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] })
    children.add(child)
    let message = ''
    child.stdout?.on('data', (chunk: Buffer) => (message += chunk.toString()))
    const ended = once(child, 'close').finally(() => children.delete(child))
    return { child, lines: () => message.split('\n').slice(0, -1), ended }
  }

  async function startFanOut(variant: Variant, n: number) {
    const words =
      typeof variant === 'string'
        ? [programs.fanOut, port, n, firstPort, variant === 'c' ? 0 : 1]
        : [
            process.execPath,
            join(import.meta.dirname, 'shred-relay-process.ts'),
            port,
            n,
            firstPort,
            variant.engine ?? 'sendmmsg',
            variant.signatures === true ? 'on' : 'off',
          ]
    const started = start(0, words.map(String))
    const deadlineMs = performance.now() + START_MS
    while (!started.lines().includes('ready')) {
      const isOver = started.child.exitCode !== null || performance.now() > deadlineMs
      if (isOver) throw new Error('the program that fans out did not start')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return started
  }

  function startLoad(to: number, { file, rate, seconds, destinations, isLatency }: LoadOptions): Started {
    const words = [file.path, to, rate, seconds, destinations, firstPort, file.isSigned ? 0 : 1, isLatency ? 1 : 0]
    return start(1, [programs.load, ...words.map(String)])
  }

  /** What the load says at its end. It holds its ports open until its input ends: a closed one would answer what is still on its way. */
  async function resultOf({ child, lines, ended }: Started): Promise<Load> {
    await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended])
    const [line] = lines()
    if (line === undefined) throw new Error('the load ended without a word')
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
 * Packets out a second between the first and the last moment told while packets came in. What waits in the socket's buffer when the load ends is
 * not counted, nor the time it takes: a short load would otherwise seem to be handled faster than it is. Nor is the start.
 */
function steadyRates(samples: readonly Sample[]): Omit<FanOutRun, 'out'> {
  const busy = samples.filter(({ in: received }, at) => received > (samples[at - 1]?.in ?? 0))
  const [first, last] = [busy[0], busy.at(-2)]
  if (first === undefined || last === undefined || last.ms <= first.ms) return { perSecond: 0, perCpuSecond: 0 }
  const out = (last.out - first.out) * 1000
  return { perSecond: out / (last.ms - first.ms), perCpuSecond: out / (last.cpuMs - first.cpuMs) }
}

/** The first of so many UDP ports in a row that nobody holds. */
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

/** Blocks of whole sets as records of a length and a packet. Those of several slots are sent once, with their signatures. */
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
