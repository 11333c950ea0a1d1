import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { encodeBase58 } from '../src/solana/crypto/base58.ts'
import { parseTransaction } from '../src/solana/transaction/transaction.ts'
import { createRandom } from '../test/support/process/property.ts'
import { type BlockPlan, makeBlock } from '../test/support/shreds/decoded-blocks.ts'
import { compile } from './support/shred-fan-out.ts'

/**
 * ShredStream Decoded up to the socket: 7,500 signed shreds a second through relay, engine and gRPC server to 50 subscribers whose filters match about 1 % of
 * the transactions each, and one that takes all, in other processes at low priority. One JSON line per figure:
 *   decoded   from the kernel's receipt of the completing shred to the write; data sets that are complete from data shreds, and those that need recovery. The
 *             goal is that of `messageMs`; `writtenMs` is measured as before (decoded-server-process.ts)
 *   relay     what the raw shreds take through the relay with the engine (and all subscribers) on and off, by turns
 *   node bench/decoded-socket.ts FOLDER [seconds, 8 by default] [what: make, decoded, relay; all by default] [rounds of relay, 2]
 * The packets are made once and kept in the folder.
 */
const [folder = '/tmp/sluice-bench-decoded', secondsText = '8', what = 'all', roundsText = '2'] = process.argv.slice(2)
const seconds = Number(secondsText)
const RATE = 7500
const SUBSCRIBERS = 50
/** Three of 256 different transactions are 1.2 %. */
const ACCOUNTS_PER_FILTER = 3
const BATCHES: BlockPlan['batchBytes'] = [50_000, ...Array.from({ length: 16 }, () => 28_000), 50_000]
/** How the shreds of a FEC set arrive: data before coding shreds, or without the first eight, so that each set is recovered. */
const ARRIVALS = { data: 0, recovery: 8 } as const
const DESTINATION_PORT = 21_877

mkdirSync(folder, { recursive: true })
const fileOf = (arrival: keyof typeof ARRIVALS) => join(folder, `${arrival}-${seconds}.shreds`)
const filtersFile = join(folder, `filters-${seconds}.json`)
if (!existsSync(filtersFile)) make()
if (what === 'all' || what === 'decoded')
  for (const arrival of ['data', 'recovery'] as const)
    print({ path: 'decoded', arrival, ...(await run('on', arrival, false)) })
if (what === 'all' || what === 'relay')
  for (let round = 0; round < Number(roundsText); round++)
    for (const engine of ['on', 'off'] as const) {
      const { load } = await run(engine, 'data', true)
      print({
        path: 'relay',
        engine,
        round,
        p50Micros: load['p50'],
        p99Micros: load['p99'],
        measured: load['measured'],
      })
    }

function make(): void {
  const random = createRandom(1)
  const records: Record<keyof typeof ARRIVALS, Buffer[]> = { data: [], recovery: [] }
  const uses = new Map<string, number>()
  let chainedRoot = new Uint8Array(32)
  for (let slot = 1000, shreds = 0; shreds < seconds * RATE; slot++) {
    const block = makeBlock({ slot, parentSlot: slot - 1, chainedRoot, batchBytes: BATCHES }, random)
    chainedRoot = Uint8Array.from(block.lastRoot)
    for (const set of block.fecSets) {
      for (const [arrival, lost] of Object.entries(ARRIVALS) as [keyof typeof ARRIVALS, number][])
        for (const packet of set.slice(lost))
          records[arrival].push(Buffer.of(packet.length & 255, packet.length >> 8), Buffer.from(packet))
      shreds += set.length
    }
    for (const wire of block.dataSets.flatMap(({ transactions }) => transactions)) {
      const parsed = parseTransaction(wire)
      if (!parsed.ok) continue
      const key = encodeBase58(parsed.transaction.staticKeys[0] as Uint8Array)
      uses.set(key, (uses.get(key) ?? 0) + 1)
    }
  }
  for (const arrival of ['data', 'recovery'] as const) writeFileSync(fileOf(arrival), Buffer.concat(records[arrival]))
  const keys = [...uses].sort((a, b) => b[1] - a[1]).map(([key]) => key)
  const filters = Array.from({ length: SUBSCRIBERS }, (_, i) =>
    Array.from({ length: ACCOUNTS_PER_FILTER }, (_, j) => keys[(i * ACCOUNTS_PER_FILTER + j) % keys.length]).join(','),
  )
  writeFileSync(filtersFile, JSON.stringify(filters))
}

/** Starts all processes, sends the shreds of one file, and returns what the server and the load have measured. */
async function run(engine: 'on' | 'off', arrival: keyof typeof ARRIVALS, isLatency: boolean) {
  const filters = ['all', ...(JSON.parse(readFileSync(filtersFile, 'utf8')) as string[])]
  const server = start(process.execPath, [support('decoded-server-process.ts'), engine, String(DESTINATION_PORT)])
  const { shreds, grpc, token } = JSON.parse(await server.line()) as { shreds: number; grpc: number; token: string }
  const clients =
    engine === 'on'
      ? start('nice', [
          '-n',
          '10',
          process.execPath,
          support('decoded-clients-process.ts'),
          String(grpc),
          token,
          ...filters,
        ])
      : undefined
  await clients?.line()
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const loadWords = [fileOf(arrival), shreds, RATE, seconds + 1, 1, DESTINATION_PORT, 0, isLatency ? 1 : 0]
  const load = start(compile(folder, 'shred-load'), loadWords.map(String))
  const loaded = JSON.parse(await load.line()) as Record<string, number>
  await new Promise((resolve) => setTimeout(resolve, 500))
  server.child.kill('SIGTERM')
  const measured = JSON.parse(await server.line()) as Record<string, number>
  clients?.child.stdin?.end()
  const received = clients && (JSON.parse(await clients.line()) as number[])
  load.child.stdin?.end()
  await Promise.all([server.ended, load.ended, clients?.ended])
  const { cpuMicros = 0, gatewayCpuMicros = 0, shreds: taken = 0, ...rest } = measured
  const [all = 0, ...others] = received ?? []
  const perShred = (micros: number) => Math.round((micros / Math.max(1, taken)) * 10) / 10
  return {
    shreds: taken,
    ...rest,
    cpuMicrosPerShred: perShred(cpuMicros),
    gatewayCpuMicrosPerShred: perShred(gatewayCpuMicros),
    meanShareOfFilters:
      all === 0
        ? 0
        : Math.round((others.reduce((sum, bytes) => sum + bytes, 0) / others.length / all) * 10_000) / 10_000,
    load: loaded,
  }
}

function start(program: string, words: readonly string[]) {
  // A child ends with this process: each has a pipe to it.
  const child: ChildProcess = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const ended = once(child, 'close')
  process.on('exit', () => child.kill('SIGKILL'))
  return {
    child,
    ended,
    async line(): Promise<string> {
      const { done, value } = await lines.next()
      if (done) throw new Error(`${words[0]} ended without a line`)
      return value as string
    },
  }
}

function support(name: string): string {
  return join(import.meta.dirname, 'support', name)
}

function print(figure: object): void {
  process.stdout.write(`${JSON.stringify({ bench: 'decoded-socket', ...figure })}\n`)
}
