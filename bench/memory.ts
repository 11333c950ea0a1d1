import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { BARE_ENV } from '../test/support/cli/run.ts'
import { MEMORY_KINDS, memoryKinds, type ProcessMemory, treeMemory } from '../test/support/machine/tree-memory.ts'

/**
 * Memory at rest of all services with the embedded chain, as `npm start` starts them: default settings in an empty folder, on ports that the system
 * chooses. Every 30 s the proportional set size (PSS) of each process, so that shared pages count once; at the end the same by kind, the heap of each
 * thread, and the slope over the last third of the time, at most 30 minutes. A first start fills the compile cache: a start that compiles takes some 50 MB more.
 *   node bench/memory.ts [minutes, 92] [another checkout]
 */
const MINUTES = Number(process.argv[2] ?? 92)
const CHECKOUT = process.argv[3] ?? join(import.meta.dirname, '..')
const SAMPLE_MS = 30_000
const SLOPE_MINUTES = Math.min(30, MINUTES / 3)
const GOAL = { totalMb: 600, slopeMbPerMinute: 0.2 }
const LISTENERS = [
  'METRICS',
  'ADMIN',
  'BUNDLE__RPC',
  'BUNDLE__WS',
  'BUNDLE__GRPC',
  'SENDER',
  'SHREDS',
  'EXECUTION',
  'INDEXER',
]
const ENV = {
  ...BARE_ENV,
  NODE_COMPILE_CACHE: join(CHECKOUT, 'node_modules/.cache/sluice'),
  XDG_RUNTIME_DIR: '/dev/null',
  ...Object.fromEntries(LISTENERS.map((name) => [`SLUICE_${name}__LISTEN`, '127.0.0.1:0'])),
}

type Sample = { readonly minute: number; readonly totalMb: number; readonly processes: readonly ProcessMemory[] }
type Running = AsyncDisposable & { readonly pid: number; readonly metrics: string; readonly isOver: () => boolean }

async function start(folder: string): Promise<Running> {
  const child = spawn(join(CHECKOUT, 'sluice'), ['serve', '--log', 'json'], {
    cwd: folder,
    env: ENV,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  let metrics = ''
  for await (const line of createInterface({ input: child.stdout })) {
    // The handover card of the demo subscription is printed between the lines of the log.
    if (!line.startsWith('{')) continue
    const { msg, service, address } = JSON.parse(line) as { msg: string; service?: string; address?: string }
    if (msg === 'listening' && service === 'metrics') metrics = `http://${address}/metrics`
    if (msg === 'started') break
  }
  if (child.exitCode !== null) throw new Error(`sluice serve ended with ${child.exitCode}`)
  child.stdout.resume()
  return {
    pid: child.pid as number,
    metrics,
    isOver: () => child.exitCode !== null || child.signalCode !== null,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
    },
  }
}

async function inFolder<T>(work: (running: Running) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-memory-'))
  try {
    await using running = await start(folder)
    return await work(running)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function measure(running: Running): Promise<void> {
  const samples: Sample[] = []
  const startedMs = performance.now()
  const minuteNow = () => (performance.now() - startedMs) / 60_000
  while (minuteNow() < MINUTES && !running.isOver()) {
    await pause(Math.min(SAMPLE_MS, MINUTES * 60_000 - (performance.now() - startedMs)))
    const processes = treeMemory(running.pid)
    const totalMb = mb(processes.reduce((sum, { pssBytes }) => sum + pssBytes, 0))
    const sample = { minute: Number(minuteNow().toFixed(1)), totalMb, processes }
    samples.push(sample)
    console.log(rowOf(sample))
  }
  if (running.isOver()) throw new Error('sluice serve ended during the measurement')
  for (const { pid, name } of samples.at(-1)?.processes ?? []) report({ process: name, ...kindsOf(pid) })
  report({ bench: 'memory-heap', usedMbByThread: await heaps(running.metrics) })
  const last = samples.filter(({ minute }) => minute >= MINUTES - SLOPE_MINUTES)
  report({
    bench: 'memory',
    minutes: MINUTES,
    totalMb: samples.at(-1)?.totalMb,
    highestMb: Math.max(...samples.map(({ totalMb }) => totalMb)),
    averageMbOfLastMinutes: mean(last.map(({ totalMb }) => totalMb)),
    slopeMbPerMinute: slopeOf(last),
    slopeMinutes: SLOPE_MINUTES,
    goal: GOAL,
  })
}

/** Least squares. */
function slopeOf(samples: readonly Sample[]): number {
  const x = mean(samples.map(({ minute }) => minute))
  const y = mean(samples.map(({ totalMb }) => totalMb))
  const along = samples.reduce((sum, { minute }) => sum + (minute - x) ** 2, 0)
  const both = samples.reduce((sum, { minute, totalMb }) => sum + (minute - x) * (totalMb - y), 0)
  return Number((both / along).toFixed(3))
}

function mean(values: readonly number[]): number {
  return Number((values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(2))
}

function rowOf({ minute, totalMb, processes }: Sample): string {
  const parts = processes.map(({ name, pssBytes, rssBytes }) => `${name} ${mb(pssBytes)} (rss ${mb(rssBytes)})`)
  return `${String(minute).padStart(5)} min  total ${totalMb.toFixed(1).padStart(6)} MB  ${parts.join('  ')}`
}

function kindsOf(pid: number): Record<string, number> {
  const kinds = memoryKinds(pid)
  return Object.fromEntries(MEMORY_KINDS.map((kind) => [`${kind}Mb`, mb(kinds[kind])]))
}

async function heaps(metrics: string): Promise<Record<string, number>> {
  const text = await (await fetch(metrics)).text()
  const rows = text.matchAll(/^sluice_thread_heap_bytes\{thread="([^"]+)"\} (\S+)/gm)
  return Object.fromEntries(Array.from(rows, ([, thread, bytes]) => [thread, mb(Number(bytes))]))
}

function mb(bytes: number): number {
  return Number((bytes / 1e6).toFixed(1))
}

function report(figures: object): void {
  console.log(JSON.stringify(figures))
}

// The first start of a checkout compiles its source, which the second finds in the cache.
await inFolder(async () => {})
await inFolder(measure)
