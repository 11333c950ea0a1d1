import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { arch, cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { prepareBenchNeeds } from '../scripts/needs.ts'

/**
 * Runs all benches one after the other, on an otherwise idle machine; their JSON lines go to standard output and, with `--out FILE`, to a
 * file. Missing programs are installed from Debian. A bench that fails, takes too long or lacks a program is reported, the next one runs, and the end is 1.
 *   npm run bench -- [--out FILE] [--only rpc,ws]
 */
type Bench = {
  readonly name: string
  readonly args?: readonly string[]
  readonly minutesMax?: number
  /** Debian packages. */
  readonly needs?: readonly string[]
}
const PROXIES = ['util-linux', 'nginx', 'haproxy']
const C = 'gcc libc6-dev'
const BENCHES: readonly Bench[] = [
  { name: 'admit' },
  { name: 'admit-threads' },
  { name: 'rpc', args: ['3', '2'], needs: ['wrk', ...PROXIES] },
  { name: 'ws', args: ['5'], needs: [C, ...PROXIES] },
  { name: 'grpc', args: ['3'], needs: PROXIES },
  { name: 'ring', needs: ['g++'] },
  { name: 'stream', args: ['2000', '204', '5'], needs: ['util-linux', C] },
  { name: 'shreds', args: ['2', '2'], minutesMax: 5, needs: ['util-linux', C] },
  { name: 'decoded', args: ['5'] },
  { name: 'sender', needs: ['openssl'] },
  { name: 'quic-loss', args: ['1500'] },
  { name: 'isolation', minutesMax: 6, needs: ['util-linux', 'curl', C] },
  { name: 'indexer', minutesMax: 12, needs: ['postgresql', 'clickhouse-server'] },
  { name: 'work', args: ['1'], minutesMax: 12 },
  { name: 'snapshot', needs: ['postgresql'] },
  { name: 'admin', minutesMax: 6 },
  { name: 'localnet' },
  { name: 'geyser', args: ['100', '2000'] },
]
const MINUTES_MAX = 3
/** A bench has a process group of its own, so it does not get them itself. */
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const { values } = parseArgs({ options: { out: { type: 'string' }, only: { type: 'string' } } })
const only = values.only?.split(',')
const unknown = only?.filter((name) => !BENCHES.some((bench) => bench.name === name)) ?? []
if (unknown.length > 0) {
  const known = BENCHES.map(({ name }) => name).join(', ')
  process.stderr.write(`there is no bench ${unknown.join(', ')}; known: ${known}\n`)
  process.exit(2)
}
const selected = BENCHES.filter(({ name }) => only?.includes(name) !== false)

function report(line: string): void {
  process.stdout.write(`${line}\n`)
  if (values.out !== undefined) appendFileSync(values.out, `${line}\n`)
}

const warn = (line: string) => process.stderr.write(`${line}\n`)
const missing = prepareBenchNeeds(new Set(selected.flatMap(({ needs = [] }) => needs)), warn)

report(
  JSON.stringify({
    machine: {
      arch: arch(),
      cores: cpus().length,
      model: cpus()[0]?.model,
      memoryMiB: Math.round(totalmem() / 2 ** 20),
    },
    node: process.version,
    load: loadavg()[0],
  }),
)
for (const { name, args = [], minutesMax = MINUTES_MAX, needs = [] } of selected) {
  const lacking = needs.filter((each) => missing.has(each))
  if (lacking.length > 0) {
    report(`${name} ${JSON.stringify({ bench: name, ended: `skipped: needs ${lacking.join(', ')}` })}`)
    process.exitCode = 1
    continue
  }
  const startedMs = performance.now()
  const child = spawn(process.execPath, ['--expose-gc', join(import.meta.dirname, `${name}.ts`), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // As the launcher starts every Sluice.
    env: { ...process.env, NODE_OPTIONS: '--max-semi-space-size=4' },
    // A group of its own, so that what a bench has started ends with it.
    detached: true,
  })
  const timer = setTimeout(() => endGroup(child), minutesMax * 60_000)
  const interrupt = () => {
    endGroup(child)
    process.exit(130)
  }
  for (const signal of ENDING_SIGNALS) process.once(signal, interrupt)
  let rest = ''
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') report(`${name} ${line}`)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(timer)
  for (const signal of ENDING_SIGNALS) process.off(signal, interrupt)
  endGroup(child)
  if (code !== 0) process.exitCode = 1
  const seconds = Math.round((performance.now() - startedMs) / 1000)
  report(`${name} ${JSON.stringify({ bench: name, seconds, ended: code === 0 ? 'well' : `with ${code ?? signal}` })}`)
}

/** Ends a bench and all that it has started and not ended itself. */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // All have ended.
  }
}
