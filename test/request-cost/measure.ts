import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { FREE_PLAN } from '../support/gateway/served.ts'
import { type Served, serve } from '../support/process/serve.ts'
import { executionCases } from './execution-cases.ts'
import { grpcCases } from './grpc-cases.ts'
import type { LiveMemory, Stretch } from './loop-monitor.ts'
import { operatorCases } from './operator-cases.ts'
import { rpcCases } from './rpc-cases.ts'
import { senderCases } from './sender-cases.ts'
import { sqlCases } from './sql-cases.ts'
import type { WorkCase, WorkTarget } from './work-case.ts'
import { wsCases } from './ws-cases.ts'

/** The longest event loop iteration during a case, by process and thread. */
export type CaseFigure = {
  readonly name: string
  readonly worst: Stretch | undefined
  readonly tookMs: number
  readonly outcome: unknown
}

export type MeasuredSluice = AsyncDisposable & {
  readonly target: WorkTarget
  readonly running: Served
  /** Runs a case `rounds` times; the figure is that of the round whose longest iteration is shortest. */
  measure(work: WorkCase, rounds: number): Promise<CaseFigure>
  /** The main process's memory after a garbage collection. */
  liveMemory(): Promise<LiveMemory>
}

export function allCases(): WorkCase[] {
  return [
    ...rpcCases(),
    ...wsCases(),
    ...grpcCases(),
    ...executionCases(),
    ...senderCases(),
    ...sqlCases(),
    ...operatorCases(),
  ]
}

/** Enough blocks for a request about many of them. */
const BLOCKS_MIN = 30

/** The last iteration of a case is recorded at the next firing of the monitor's timer. */
const SETTLE_MS = 15

/** `sluice serve` with every service over the embedded chain, its event loops monitored. */
export async function startMeasuredSluice({ tps = 2_500 }: { readonly tps?: number } = {}): Promise<MeasuredSluice> {
  await using opening = new AsyncDisposableStack()
  const home = opening.use(await temporaryFolder())
  const monitorFile = home.file('stretches.jsonl')
  const configFile = home.file('sluice.toml')
  writeFileSync(configFile, FREE_PLAN)
  const sluice = (...words: string[]) =>
    sluiceHere([...words, '--state', home.file('.sluice'), '--config', configFile], {})
  assert.equal((await sluice('customer', 'add', 'acme')).code, 0)
  const words = ['--customer', 'acme', '--plan', 'free', '--products', 'bundle,indexer', '--print-token', '--json']
  const made = await sluice('sub', 'create', 'acme-work', ...words)
  assert.equal(made.code, 0, made.stderr)
  const running = opening.use(
    serve({
      cwd: home.path,
      args: ['--no-demo'],
      env: {
        NODE_OPTIONS: `--max-semi-space-size=4 --import=${join(import.meta.dirname, 'loop-monitor.ts')}`,
        SLUICE_LOOP_MONITOR: monitorFile,
        SLUICE_LOCALNET__ENABLED: 'true',
        SLUICE_LOCALNET__RING__TPS: String(tps),
        SLUICE_EXECUTION__ENABLED: 'true',
        // As many blocks as exist when the cases start, so that memory does not grow during them.
        SLUICE_EXECUTION__BLOCKS__HELD_MAX: String(BLOCKS_MIN),
        SLUICE_EXECUTION__RESUME__BYTES_MAX: String(4 * 1024 * 1024),
        SLUICE_EXECUTION__RPC__RENDERED_BYTES_MAX: String(4 * 1024 * 1024),
        SLUICE_INDEXER__ENABLED: 'true',
      },
    }),
  )
  await running.line(/"msg":"started"/)
  const http = async (service: string) => `http://${await running.address(service)}`
  const token = /slc_[0-9A-Za-z]{38}/.exec(made.stdout)?.[0] ?? ''
  const { indexer } = JSON.parse(made.stdout) as { indexer: { username: string; password: string } }
  const basic = Buffer.from(`${indexer.username}:${indexer.password}`).toString('base64')
  const target: WorkTarget = {
    http: {
      rpc: await http('rpc'),
      sender: await http('sender'),
      execution: await http('execution'),
      indexer: await http('indexer'),
      operator: await http('metrics'),
    },
    ws: await running.address('ws'),
    grpc: await running.address('grpc'),
    token,
    indexerHeaders: { 'x-token': token, authorization: `Basic ${basic}` },
  }
  await until(`${BLOCKS_MIN} blocks are held`, async () => {
    const blocks = await fetch(`${target.http.execution}/v1/blocks?count=${BLOCKS_MIN}`)
    return ((await blocks.json()) as { blocks: unknown[] }).blocks.length >= BLOCKS_MIN
  })

  let readChars = 0
  function linesSince(): (Stretch | LiveMemory)[] {
    const text = existsSync(monitorFile) ? readFileSync(monitorFile, 'utf8') : ''
    const lines = text.slice(readChars).split('\n').slice(0, -1)
    readChars += lines.reduce((sum, line) => sum + line.length + 1, 0)
    return lines.map((line) => JSON.parse(line) as Stretch | LiveMemory)
  }

  // Starting takes long enough to be recorded.
  const monitored = new Set(linesSince().map((line) => ('program' in line ? line.program : '')))
  for (const program of ['threads/gateway', 'threads/sender', 'threads/execution', 'threads/indexer', 'child.ts'])
    assert.ok(monitored.has(program), `${program} is not monitored, only ${[...monitored].join(', ')}`)

  async function liveMemory(): Promise<LiveMemory> {
    linesSince()
    running.child.kill('SIGUSR2')
    let found: LiveMemory | undefined
    await until('memory is reported', () => {
      found ??= linesSince().find((line): line is LiveMemory => 'liveBytes' in line)
      return found !== undefined
    })
    return found as unknown as LiveMemory
  }

  const opened = opening.move()
  return {
    target,
    running,
    liveMemory,
    async measure({ name, run }, rounds) {
      let best: CaseFigure | undefined
      for (let round = 0; round < rounds; round++) {
        linesSince()
        const startedMs = performance.now()
        const outcome = await run(target)
        const tookMs = Math.round(performance.now() - startedMs)
        await pause(SETTLE_MS)
        const worst = linesSince()
          .filter(isEventLoop)
          .toSorted((one, other) => other.cpuMs - one.cpuMs)[0]
        if (best === undefined || (worst?.cpuMs ?? 0) < (best.worst?.cpuMs ?? 0))
          best = { name, worst, tookMs, outcome }
        if (worst === undefined) break
      }
      return best ?? { name, worst: undefined, tookMs: 0, outcome: undefined }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Processes, and the threads of services. Those of the ring writer, ring reader, relay and verifiers handle no requests. */
function isEventLoop(line: Stretch | LiveMemory): line is Stretch {
  return 'threadId' in line && (line.threadId === 0 || line.program.startsWith('threads/'))
}
