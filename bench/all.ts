import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { arch, cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { prepareBenchNeeds } from '../scripts/needs.ts'
import { prepareTestPackages } from '../scripts/test-packages.ts'

/**
 * Runs all benches one after the other, on an otherwise idle machine; their JSON lines go to standard output and, with `--out FILE`, to a
 * file. One that fails or takes too long is reported and the next one runs.
 *   npm run bench -- [--out FILE] [--only rpc,ws]
 */
const BENCHES: readonly { readonly name: string; readonly args?: readonly string[]; readonly minutesMax?: number }[] = [
  { name: 'admit' },
  { name: 'rpc', args: ['3', '2'] },
  { name: 'ws', args: ['5'] },
  { name: 'grpc', args: ['3'] },
  { name: 'ring' },
  { name: 'stream', args: ['2000', '204', '5'] },
  { name: 'shreds', args: ['2', '2'], minutesMax: 5 },
  { name: 'sender' },
  { name: 'indexer', minutesMax: 6 },
  { name: 'work', args: ['3'], minutesMax: 10 },
  { name: 'snapshot' },
  { name: 'localnet' },
  { name: 'geyser', args: ['100', '2000'] },
]
const MINUTES_MAX = 3

const { values } = parseArgs({ options: { out: { type: 'string' }, only: { type: 'string' } } })
const only = values.only?.split(',')

function report(line: string): void {
  process.stdout.write(`${line}\n`)
  if (values.out !== undefined) appendFileSync(values.out, `${line}\n`)
}

const warn = (line: string) => process.stderr.write(`${line}\n`)
const missing = prepareBenchNeeds(warn)
if (missing.length > 0) warn(`MISSING: ${missing.join(', ')}: benches that use them fail`)
if (!prepareTestPackages(warn)) process.exit(1)

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
for (const { name, args = [], minutesMax = MINUTES_MAX } of BENCHES) {
  if (only !== undefined && !only.includes(name)) continue
  const startedMs = performance.now()
  const child = spawn(process.execPath, ['--expose-gc', join(import.meta.dirname, `${name}.ts`), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // As the launcher starts every Sluice.
    env: { ...process.env, NODE_OPTIONS: '--max-semi-space-size=4' },
    timeout: minutesMax * 60_000,
  })
  let rest = ''
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') report(`${name} ${line}`)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  const seconds = Math.round((performance.now() - startedMs) / 1000)
  report(`${name} ${JSON.stringify({ bench: name, seconds, ended: code === 0 ? 'well' : `with ${code ?? signal}` })}`)
}
