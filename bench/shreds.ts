import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { ThreadPriority } from '../src/platform/native/thread-schedule.ts'
import {
  compile,
  type FanOutBench,
  openFanOutBench,
  type PacketFile,
  type RelayVariant,
  type Variant,
  writePackets,
} from './support/shred-fan-out.ts'

/**
 * The relay compared with a C program that only fans out (reference/shred-fanout.c), alternating in one run: the program under test on one core,
 * load and destinations on the other; with signature checks the checking thread may use both. One JSON line per figure, with both sides and the ratio. The
 * C program checks neither format nor duplicates nor signatures. The goal of 0.9 is for the relay without signature checks; with them, the ratio to the same
 * C program shows their cost, and `ratioToHashing` compares with a C program that computes the hashes of the packets, which every check of their content needs. `ratioToJoined` compares with a C program that uses the same system calls as the relay, with larger batches.
 *   node bench/shreds.ts [seconds per measurement, 2 by default] [rounds, 2] [what: fan-out, lossless, latency; all by default]
 *     --signatures on|off   one of the two only
 *     --priority P          the C program and the relay with this priority: raised or realtime
 *     --before FOLDER       also the relay of another checkout of this project
 */
const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { signatures: { type: 'string' }, priority: { type: 'string' }, before: { type: 'string' } },
})
const [secondsText = '2', roundsText = '2', what = 'all'] = positionals
const seconds = Number(secondsText)
const rounds = Number(roundsText)
const priority = (flags.priority ?? 'normal') as ThreadPriority

/** Signed packets cannot be sent twice, so they are sent at a rate above what can be checked, not as fast as possible. */
const SIGNED_RATE = 120_000
const SIGNED_SLOTS = 9
/** FEC sets per slot. With slots this large the slot number grows slowly, so that an overrun never leaves the window. */
const SETS = 250
/** Step of the search for the highest lossless rate, in incoming packets per second. */
const LOSSLESS_STEP = 5000
const LOSSLESS_STEPS = 40
/** On a busy machine a short pause loses packets at any rate, so only a repeated loss counts. */
const LOSSLESS_TRIES = 2
/** Longer than the receive buffer can absorb, short enough to try many rates. */
const LOSSLESS_SECONDS = 1
const LATENCY_RATE = 7500
const DIRECT_SECONDS_MAX = 5
const REFERENCES = [
  { name: 'c', variant: 'c' },
  { name: 'c joined', variant: 'c joined' },
  { name: 'c hashing', variant: 'c hashing' },
] as const

type Measured = Awaited<ReturnType<FanOutBench['run']>>

const VARIANTS = [
  { name: 'signatures off', variant: {} },
  { name: 'signatures on', variant: { signatures: true } },
].flatMap(({ name, variant }: { name: string; variant: RelayVariant }) => {
  if (flags.signatures !== undefined && name !== `signatures ${flags.signatures}`) return []
  const { before } = flags
  return before === undefined
    ? [{ name, variant }]
    : [
        { name, variant },
        { name: `${name}, before`, variant: { ...variant, checkout: before } },
      ]
})

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const running: { rig?: FanOutBench } = {}
process.on('exit', () => {
  running.rig?.[Symbol.dispose]()
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))
const rig = await openFanOutBench({
  fanOut: compile(folder, 'shred-fanout'),
  load: compile(folder, 'shred-load'),
  priority,
})
running.rig = rig

/** One slot, sent repeatedly with an increasing slot number: every packet is new, and no signature is valid. */
const unsigned = writePackets(join(folder, 'unsigned'), 1, SETS)
const signed = writePackets(join(folder, 'signed'), SIGNED_SLOTS, SETS)
if (what === 'all' || what === 'fan-out') for (const n of [10, 50]) await measureFanOut(rig, n)
if (what === 'all' || what === 'lossless') await measureLossless(rig, 10)
if (what === 'all' || what === 'latency') await measureLatency(rig, 20)

/** Outgoing packets under overload. */
async function measureFanOut({ run }: FanOutBench, n: number): Promise<void> {
  const relays =
    flags.signatures === undefined ? [...VARIANTS, { name: 'dgram', variant: { engine: 'dgram' } as const }] : VARIANTS
  const runs = new Map<string, Measured[]>()
  for (let round = 0; round < rounds; round++) {
    for (const { name, variant } of [...REFERENCES, ...relays]) {
      const isSigned = variant === 'c hashing' || (typeof variant === 'object' && variant.signatures === true)
      const [file, rate] = isSigned ? ([signed, SIGNED_RATE] as const) : ([unsigned, 0] as const)
      addTo(runs, name, await run(variant, { file, rate, seconds, destinations: n }))
    }
  }
  const middle = (name: string, field: 'perSecond' | 'perCpuSecond') =>
    Math.round(median(runs, name, (each) => each.run[field]))
  for (const { name } of relays) {
    print({
      path: 'fan-out',
      n,
      variant: name,
      packetsPerSecond: middle(name, 'perSecond'),
      reference: middle('c', 'perSecond'),
      ratio: ratio(middle(name, 'perSecond'), middle('c', 'perSecond')),
      packetsPerCpuSecond: middle(name, 'perCpuSecond'),
      referencePerCpuSecond: middle('c', 'perCpuSecond'),
      ratioPerCpuSecond: ratio(middle(name, 'perCpuSecond'), middle('c', 'perCpuSecond')),
      ratioToJoined: ratio(middle(name, 'perSecond'), middle('c joined', 'perSecond')),
      ratioToJoinedPerCpuSecond: ratio(middle(name, 'perCpuSecond'), middle('c joined', 'perCpuSecond')),
      ratioToHashing: ratio(middle(name, 'perSecond'), middle('c hashing', 'perSecond')),
      hashingToReference: ratio(middle('c hashing', 'perSecond'), middle('c', 'perSecond')),
      ...cpuPerPacket(runs, name),
    })
  }
}

/** The highest incoming rate at which every packet reaches every destination. */
async function measureLossless(rig: FanOutBench, n: number): Promise<void> {
  const c = await losslessOf(rig, 'c', n, unsigned)
  for (const { name, variant } of VARIANTS) {
    const ours = await losslessOf(rig, variant, n, variant.signatures === true ? signed : unsigned)
    print({
      path: 'lossless',
      n,
      variant: name,
      packetsPerSecondOut: ours * n,
      reference: c * n,
      ratio: ratio(ours, c),
    })
  }
}

async function losslessOf(rig: FanOutBench, variant: Variant, n: number, file: PacketFile): Promise<number> {
  let [good, bad] = [0, LOSSLESS_STEPS + 1]
  while (bad - good > 1) {
    const step = (good + bad) >> 1
    if (await isLossless(rig, variant, n, file, step * LOSSLESS_STEP)) good = step
    else bad = step
  }
  return good * LOSSLESS_STEP
}

async function isLossless(
  rig: FanOutBench,
  variant: Variant,
  n: number,
  file: PacketFile,
  rate: number,
): Promise<boolean> {
  for (let attempt = 0; attempt < LOSSLESS_TRIES; attempt++) {
    const { run, load } = await rig.run(variant, { file, rate, seconds: LOSSLESS_SECONDS, destinations: n })
    // The load generator must have kept the rate.
    if (run.out === load.sent * n && load.sent / load.seconds >= rate * 0.97) return true
  }
  return false
}

/** The latency from the load through the relay to the last destination over loopback: medians of the rounds, of the first two seconds and of the time after them. */
async function measureLatency({ run, runDirect }: FanOutBench, n: number): Promise<void> {
  const options = { file: signed, rate: LATENCY_RATE, seconds, destinations: n, isLatency: true }
  const direct = await runDirect({ ...options, seconds: Math.min(seconds, DIRECT_SECONDS_MAX) })
  const runs = new Map<string, Measured[]>()
  for (let round = 0; round < rounds; round++) {
    for (const { name, variant } of [{ name: 'c', variant: 'c' as const }, ...VARIANTS]) {
      const measured = await run(variant, options)
      addTo(runs, name, measured)
      // The result of a long measurement that is ended early.
      const { first, later } = measured.load
      print({ path: 'latency, one run', round, variant: name, n, unit: 'microseconds', first, later })
    }
  }
  const percentiles = (name: string, part: 'first' | 'later') => ({
    p50: Math.round(median(runs, name, ({ load }) => load[part].p50)),
    p99: Math.round(median(runs, name, ({ load }) => load[part].p99)),
    p999: Math.round(median(runs, name, ({ load }) => load[part].p999)),
  })
  for (const { name } of VARIANTS) {
    const [first, later] = [percentiles(name, 'first'), percentiles(name, 'later')]
    const reference = { first: percentiles('c', 'first'), later: percentiles('c', 'later') }
    print({
      path: 'latency',
      variant: name,
      n,
      packetsPerSecondIn: LATENCY_RATE,
      unit: 'microseconds',
      first,
      later,
      reference,
      direct: { p50: direct.p50, p99: direct.p99, p999: direct.p999 },
      ratioP99: { first: ratio(first.p99, reference.first.p99), later: ratio(later.p99, reference.later.p99) },
      // Each run, since a run beside other programs shows in its neighbours, too.
      p99OfRuns: runs.get(name)?.map(({ load }) => Math.round(load.later.p99)),
      referenceP99OfRuns: runs.get('c')?.map(({ load }) => Math.round(load.later.p99)),
      lost: Math.max(...(runs.get(name) ?? []).map(({ load }) => load.sent - load.measured)),
      ...cpuPerPacket(runs, name),
    })
  }
}

function addTo(runs: Map<string, Measured[]>, name: string, measured: Measured): void {
  runs.set(name, [...(runs.get(name) ?? []), measured])
}

function median(runs: Map<string, Measured[]>, name: string, value: (of: Measured) => number): number {
  const values = (runs.get(name) ?? []).map(value).toSorted((x, y) => x - y)
  return values[values.length >> 1] ?? 0
}

/** CPU microseconds per incoming packet. */
function cpuPerPacket(runs: Map<string, Measured[]>, name: string) {
  const tenths = (value: number) => Math.round(value * 10) / 10
  return {
    cpuMicrosPerPacketIn: tenths(median(runs, name, ({ run }) => run.cpuMicrosIn)),
    otherThreadsCpuMicrosPerPacketIn: tenths(median(runs, name, ({ run }) => run.otherCpuMicrosIn)),
    referenceCpuMicrosPerPacketIn: tenths(median(runs, 'c', ({ run }) => run.cpuMicrosIn)),
  }
}

function ratio(ours: number, theirs: number): number {
  return Math.round((ours / theirs) * 1000) / 1000
}

function print(line: object): void {
  process.stdout.write(
    `${JSON.stringify({ bench: 'shreds', priority, ...line, node: process.version, arch: process.arch })}\n`,
  )
}
