import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  compile,
  type FanOutBench,
  type FanOutRun,
  openFanOutBench,
  type PacketFile,
  type Variant,
  writePackets,
} from './support/shred-fan-out.ts'

/**
 * The relay compared with a C program that only fans out (reference/shred-fanout.c), alternating in one run: the program under test on one core,
 * load and destinations on the other. One JSON line per figure, with both sides and the ratio. The C program checks neither format nor duplicates
 * nor signatures. The goal of 0.9 is for the relay without signature checks; with them, the ratio to the same C program shows their cost.
 * `ratioToJoined` compares with a C program that uses the same system calls as the relay, with larger batches.
 *   node bench/shreds.ts [seconds per measurement, 2 by default] [rounds, 2] [what: fan-out, lossless, latency; all by default]
 */
const [, , secondsText = '2', roundsText = '2', what = 'all'] = process.argv
const seconds = Number(secondsText)
const rounds = Number(roundsText)

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

const VARIANTS: readonly (readonly [string, Variant])[] = [
  ['signatures off', {}],
  ['signatures on', { signatures: true }],
  ['dgram', { engine: 'dgram' }],
]

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const running: { rig?: FanOutBench } = {}
process.on('exit', () => {
  running.rig?.[Symbol.dispose]()
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))
const rig = await openFanOutBench({ fanOut: compile(folder, 'shred-fanout'), load: compile(folder, 'shred-load') })
running.rig = rig

/** One slot, sent repeatedly with an increasing slot number: every packet is new, and no signature is valid. */
const unsigned = writePackets(join(folder, 'unsigned'), 1, SETS)
const signed = writePackets(join(folder, 'signed'), SIGNED_SLOTS, SETS)
if (what === 'all' || what === 'fan-out') for (const n of [10, 50]) await measureFanOut(rig, n)
if (what === 'all' || what === 'lossless') await measureLossless(rig, 10)
if (what === 'all' || what === 'latency') await measureLatency(rig, 20)

/** Outgoing packets under overload. */
async function measureFanOut({ run }: FanOutBench, n: number): Promise<void> {
  const runs = new Map<string, FanOutRun[]>()
  for (let round = 0; round < rounds; round++) {
    for (const [name, variant] of [['c', 'c'] as const, ['c joined', 'c joined'] as const, ...VARIANTS]) {
      const isSigned = name === 'signatures on'
      const [file, rate] = isSigned ? ([signed, SIGNED_RATE] as const) : ([unsigned, 0] as const)
      const { run: result } = await run(variant, { file, rate, seconds, destinations: n })
      runs.set(name, [...(runs.get(name) ?? []), result])
    }
  }
  const middle = (name: string, field: 'perSecond' | 'perCpuSecond') =>
    Math.round((runs.get(name) ?? []).map((each) => each[field]).toSorted((x, y) => x - y)[rounds >> 1] ?? 0)
  for (const [name] of VARIANTS) {
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
    })
  }
}

/** The highest incoming rate at which every packet reaches every destination. */
async function measureLossless(rig: FanOutBench, n: number): Promise<void> {
  const c = await losslessOf(rig, 'c', n, unsigned)
  for (const [variant, options, file] of [
    ['signatures off', {}, unsigned],
    ['signatures on', { signatures: true }, signed],
  ] as const) {
    const ours = await losslessOf(rig, options, n, file)
    print({ path: 'lossless', n, variant, packetsPerSecondOut: ours * n, reference: c * n, ratio: ratio(ours, c) })
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

/** The latency that the relay adds over loopback, at the last destination. */
async function measureLatency({ run, runDirect }: FanOutBench, n: number): Promise<void> {
  const options = { file: signed, rate: LATENCY_RATE, seconds, destinations: n, isLatency: true }
  const direct = await runDirect(options)
  const { load: reference } = await run('c', options)
  for (const [variant, given] of VARIANTS.slice(0, 2)) {
    const { load: through } = await run(given, options)
    const added = (field: 'p50' | 'p99', of: typeof through) => Math.round(of[field] - direct[field])
    print({
      path: 'added latency',
      variant,
      n,
      packetsPerSecondIn: LATENCY_RATE,
      p50Microseconds: added('p50', through),
      p99Microseconds: added('p99', through),
      reference: { p50Microseconds: added('p50', reference), p99Microseconds: added('p99', reference) },
      direct: { p50Microseconds: Math.round(direct.p50), p99Microseconds: Math.round(direct.p99) },
      measured: through.measured,
    })
  }
}

function ratio(ours: number, theirs: number): number {
  return Math.round((ours / theirs) * 1000) / 1000
}

function print(line: object): void {
  process.stdout.write(`${JSON.stringify({ bench: 'shreds', ...line, node: process.version, arch: process.arch })}\n`)
}
