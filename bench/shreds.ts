import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/host/clock.ts'
import { silentLogger } from '../src/host/logger.ts'
import { secureRandom } from '../src/host/random.ts'
import type { UdpEngine } from '../src/host/udp-port.ts'
import type { RelayOptions } from '../src/shreds/protocol.ts'
import { startRelayLink } from '../src/shreds/relay-link.ts'
import { blockPackets, LEADER_ID, VERSION } from '../test/support/shreds.ts'

/**
 * The relay against a C program that only fans out (reference/shred-fanout.c), in one run: the relay on one core, load and destinations on the
 * other. One JSON line per path, with both figures and the ratio.
 *   node bench/shreds.ts [seconds per measurement, 3 by default] [rounds, 3]
 */
/** Destinations' ports; nothing else on the machine should use them during a run. */
const FIRST_PORT = 41_000
const RELAY_PORT = 40_999
const LOSSLESS_STEPS = [20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140].map((thousand) => thousand * 1000)

const [, , first = '3', second = '3'] = process.argv
if (first === 'relay') await runRelayChild()
else await measureAll(Number(first), Number(second))

type Relay = { readonly port: number; stop(): Promise<Counted> }
/** `cpuSeconds` is what the relay used between its start and its end. */
type Counted = { readonly in: number; readonly out: number; readonly overruns: number; readonly cpuSeconds: number }
type Rate = { readonly perSecond: number; readonly perCpuSecond: number }
type Load = { sent: number; seconds: number; measured: number; p50: number; p99: number }

async function measureAll(seconds: number, rounds: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  try {
    const programs = { fanOut: compile(folder, 'shred-fanout'), load: compile(folder, 'shred-load') }
    // One slot of 20 sets, sent again and again with the slot raised: for paths without signatures.
    const unsigned = writePackets(join(folder, 'unsigned'), 1, 20)
    const signed = writePackets(join(folder, 'signed'), 12, 50)
    const bench = createBench(programs, seconds)

    for (const n of [10, 50]) {
      const c = await bench.rateOf('c', n, unsigned, rounds)
      for (const [variant, options, file] of [
        ['signatures off', {}, unsigned],
        ['signatures on', { signatures: true }, signed],
        ['dgram', { engine: 'dgram' as const }, unsigned],
      ] as const) {
        const ours = await bench.rateOf(options, n, file, rounds)
        print({
          path: 'fan-out',
          n,
          variant,
          packetsPerSecond: ours.perSecond,
          reference: c.perSecond,
          ratio: ratio(ours.perSecond, c.perSecond),
          packetsPerCpuSecond: ours.perCpuSecond,
          referencePerCpuSecond: c.perCpuSecond,
          ratioPerCpuSecond: ratio(ours.perCpuSecond, c.perCpuSecond),
        })
      }
    }
    const lossless = { ours: await bench.losslessOf({}, 10, unsigned), c: await bench.losslessOf('c', 10, unsigned) }
    print({
      path: 'lossless',
      n: 10,
      packetsPerSecondOut: lossless.ours * 10,
      reference: lossless.c * 10,
      ratio: ratio(lossless.ours, lossless.c),
    })
    print({
      path: 'lossless',
      n: 10,
      variant: 'signatures on',
      packetsPerSecondOut: (await bench.losslessOf({ signatures: true }, 10, signed)) * 10,
    })

    const direct = await bench.latencyOf(undefined, 20, signed)
    const reference = await bench.latencyOf('c', 20, signed)
    for (const [variant, options] of [
      ['signatures off', {}],
      ['signatures on', { signatures: true }],
    ] as const) {
      const through = await bench.latencyOf(options, 20, signed)
      print({
        path: 'added latency',
        variant,
        n: 20,
        packetsPerSecondIn: 7500,
        p50Microseconds: Math.round(through.p50 - direct.p50),
        p99Microseconds: Math.round(through.p99 - direct.p99),
        reference: {
          p50Microseconds: Math.round(reference.p50 - direct.p50),
          p99Microseconds: Math.round(reference.p99 - direct.p99),
        },
        direct: { p50Microseconds: Math.round(direct.p50), p99Microseconds: Math.round(direct.p99) },
        measured: through.measured,
      })
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type Variant = 'c' | { readonly engine?: UdpEngine; readonly signatures?: boolean }
type PacketFile = { readonly path: string; readonly isSigned: boolean }

function createBench(programs: { fanOut: string; load: string }, seconds: number) {
  const cores = availableParallelism() > 1
  const pinned = (core: number, words: string[]) => (cores ? ['taskset', '-c', String(core), ...words] : words)

  async function startRelay(variant: Variant, n: number): Promise<Relay> {
    const words =
      variant === 'c'
        ? [programs.fanOut, String(RELAY_PORT), String(n), String(FIRST_PORT)]
        : [
            process.execPath,
            import.meta.filename,
            'relay',
            String(n),
            variant.engine ?? 'sendmmsg',
            variant.signatures === true ? 'on' : 'off',
          ]
    const child = run(pinned(0, words))
    let out = ''
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
    const ended = once(child, 'close')
    while (!out.includes('ready')) await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended])
    const cpuBefore = cpuSecondsOf(child.pid)
    return {
      port: RELAY_PORT,
      async stop() {
        const cpuSeconds = cpuSecondsOf(child.pid) - cpuBefore
        child.kill('SIGTERM')
        await ended
        const counted = JSON.parse(out.trim().split('\n').at(-1) ?? '{}') as { in: number; out: number }
        return { overruns: 0, ...counted, cpuSeconds }
      },
    }
  }

  async function load(file: PacketFile, port: number, rate: number, n: number, latency: boolean): Promise<Load> {
    const words = [file.path, port, rate, seconds, n, FIRST_PORT, file.isSigned ? 0 : 1, latency ? 1 : 0].map(String)
    const child = run(pinned(1, [programs.load, ...words]))
    let out = ''
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
    await once(child, 'close')
    return JSON.parse(out) as Load
  }

  return {
    /** Packets out under more load than it can take: a second of the clock, and a second of the processor. The middle of the rounds. */
    async rateOf(variant: Variant, n: number, file: PacketFile, rounds: number): Promise<Rate> {
      const rates: Rate[] = []
      for (let round = 0; round < rounds; round++) {
        const relay = await startRelay(variant, n)
        const { seconds: took } = await load(file, relay.port, 0, n, false)
        const { out, cpuSeconds } = await relay.stop()
        rates.push({ perSecond: out / took, perCpuSecond: out / cpuSeconds })
      }
      const middle = (field: keyof Rate) =>
        Math.round(rates.map((each) => each[field]).toSorted((x, y) => x - y)[rounds >> 1] ?? 0)
      return { perSecond: middle('perSecond'), perCpuSecond: middle('perCpuSecond') }
    },
    /** The highest rate in at which every packet is relayed. */
    async losslessOf(variant: Variant, n: number, file: PacketFile): Promise<number> {
      let best = 0
      for (const rate of LOSSLESS_STEPS) {
        const relay = await startRelay(variant, n)
        const { sent, seconds: took } = await load(file, relay.port, rate, n, false)
        const counted = await relay.stop()
        // The load generator itself must have kept the rate.
        if (counted.out < sent * n || sent / took < rate * 0.97) break
        best = rate
      }
      return best
    },
    async latencyOf(variant: Variant | undefined, n: number, file: PacketFile): Promise<Load> {
      if (variant === undefined) return load(file, FIRST_PORT + n - 1, 7500, n, true)
      const relay = await startRelay(variant, n)
      const result = await load(file, relay.port, 7500, n, true)
      await relay.stop()
      return result
    },
  }
}

/** The relaying thread of the service, in a process that can be pinned to a core. */
async function runRelayChild(): Promise<void> {
  const [, , , n, engine, signatures] = process.argv
  const total = { in: 0, out: 0, overruns: 0 }
  const unlimited = 1_000_000_000
  const options: RelayOptions = {
    port: {
      listen: { host: '127.0.0.1', port: RELAY_PORT },
      sources: ['127.0.0.1'],
      engine: engine as UdpEngine,
      receiveBufferBytes: 25 * 1024 * 1024,
      sendBufferBytes: 4 * 1024 * 1024,
    },
    version: VERSION,
    signatures: signatures === 'on' ? 'auto' : 'off',
    signatureFailuresPerSecond: 200,
    shredsPerSlotMax: 32_768,
    window: { backSlots: 64, aheadSlots: 32 },
    caps: {
      destinationPacketsPerSecond: unlimited,
      destinationBytesPerSecond: unlimited * 1000,
      totalPacketsPerSecond: unlimited,
      totalBytesPerSecond: unlimited * 1000,
    },
    leaders: [{ fromSlot: 0, toSlot: 2 ** 40, identities: [LEADER_ID] }],
    destinations: Array.from({ length: Number(n) }, (_, i) => ({
      subscriptionId: `sub_${i}`,
      ip: '127.0.0.1',
      port: FIRST_PORT + i,
    })),
  }
  const relay = await startRelayLink(options, {
    clock: systemClock,
    random: secureRandom,
    log: silentLogger,
    onState() {},
    onReport({ counts, destinations, overruns }) {
      total.in += counts.received
      for (const { packets } of destinations) total.out += packets
      total.overruns = overruns
    },
  })
  process.on('SIGTERM', () => {
    void relay[Symbol.asyncDispose]().then(() => process.stdout.write(`${JSON.stringify(total)}\n`))
  })
  process.stdout.write('ready\n')
}

/** User and system time of a process and its threads, in hundredths of a second (proc(5), fields 14 and 15). */
function cpuSecondsOf(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function writePackets(path: string, slots: number, setsPerSlot: number): PacketFile {
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

function compile(folder: string, name: string): string {
  const source = join(import.meta.dirname, 'reference', `${name}.c`)
  const target = join(folder, name)
  const { status, stderr } = spawnSync('gcc', ['-O2', '-pthread', '-o', target, source], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`gcc: ${stderr}`)
  return target
}

function run([program = '', ...words]: string[]): ChildProcess {
  return spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] })
}

function ratio(ours: number, theirs: number): number {
  return Math.round((ours / theirs) * 1000) / 1000
}

function print(line: object): void {
  process.stdout.write(`${JSON.stringify({ bench: 'shreds', ...line, node: process.version, arch: process.arch })}\n`)
}
