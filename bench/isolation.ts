import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { startLoadProcess } from '../test/support/sender/load-process.ts'
import { startSenderNode } from '../test/support/sender/process.ts'
import { TIP_ACCOUNTS } from '../test/support/sender/start.ts'
import { compileC } from './support/compile-c.ts'
import type { PacedCallsReport, PacedCallsTask } from './support/paced-calls-process.ts'
import { startPinned } from './support/pinned-process.ts'
import { type SluiceProcess, startSluiceProcess } from './support/sluice-process.ts'
import { startWsReaders } from './support/ws-readers.ts'

/**
 * Whether the load of one product delays another: the event-loop delay of the gateway thread of a `sluice serve` that serves 500 calls per second, while
 * there are 2,000 clients of the execution stream with 100,000 deliveries per second, an analyst who repeats the largest allowed result, 300 transactions
 * per second to the sender, or all three. Load generators give way (nice 10). One JSON line per load; with another checkout by turns.
 *   node bench/isolation.ts [--old CHECKOUT] [--windows 2] [--rounds 1] [--loads none,stream,sql,sender,all]
 */
const { values } = parseArgs({
  options: {
    old: { type: 'string' },
    windows: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '1' },
    loads: { type: 'string', default: 'none,stream,sql,sender,all' },
  },
})
const ALL_CORES = '0-1'
const NICENESS = 10
/** The delay is published for periods of 10 s; the second value after a start is of a period entirely within the load. */
const PERIOD_SECONDS = 10
const WARM_UP_SECONDS = 5
const SECONDS = PERIOD_SECONDS * (1 + Number(values.windows))
const CALLS_PER_SECOND = 500
const STREAM_CLIENTS = 2000
/** Three events per block of the simulated EVM chain: 50 messages per second to each client. */
const STREAM_PATH = '/v1/ws?subscribe=BlockStart,BlockEnd,BlockFinalized'
const RING_BLOCK_MS = 60
const TRANSACTIONS_PER_SECOND = 300
/** The most rows of a result by default (indexer.query.rowsMax), and not quite the most bytes (bytesMax). */
const SQL_ROWS = 1_000_000
/** After a query that failed: on a busy machine it may reach its time limit. */
const REPEAT_MS = 1000
const SQL_ROW_TEXT = 'x'.repeat(48)
const GOALS_MS: Readonly<Record<string, number>> = { none: 5, stream: 5, sql: 5, sender: 5, all: 10 }

type Side = { readonly name: 'new' | 'old'; readonly checkout: string; readonly metric: string }
/** What a load did, for the report. */
type Load = AsyncDisposable & { result(): Promise<object> }

const SIDES: readonly Side[] = [
  {
    name: 'new',
    checkout: join(import.meta.dirname, '..'),
    metric: 'sluice_thread_event_loop_delay_seconds{thread="gateway-1",stat="p99"}',
  },
  ...(values.old === undefined
    ? []
    : [{ name: 'old' as const, checkout: values.old, metric: 'sluice_process_event_loop_delay_seconds{stat="p99"}' }]),
]
const LOADS: Readonly<Record<string, (sluice: SluiceProcess) => Promise<Load>>> = {
  stream: startStreamClients,
  sql: startAnalyst,
  sender: startTransactions,
}

const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-isolation-'))
const readers = compileC(folder, 'ws-readers')
let started = 0
try {
  for (let round = 0; round < Number(values.rounds); round++)
    for (const load of values.loads.split(',')) for (const side of SIDES) await measure(side, load)
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function measure(side: Side, name: string): Promise<void> {
  await using running = new AsyncDisposableStack()
  const node = running.use(await startSenderNode())
  const sluice = running.use(
    await startSluiceProcess({
      command: 'serve',
      folder: join(folder, `sluice-${++started}`),
      cores: ALL_CORES,
      config: configOf(node.url),
      products: 'bundle,indexer',
      checkout: side.checkout,
    }),
  )
  const loads = await Promise.all(
    Object.entries(LOADS)
      .filter(([each]) => name === each || name === 'all')
      .map(async ([each, start]) => ({ each, load: running.use(await start(sluice)) })),
  )
  await pause(WARM_UP_SECONDS * 1000)
  const cpuBefore = sluice.cpuMicros()
  const results = Promise.all(loads.map(async ({ each, load }) => [each, await load.result()] as const))
  const [calls, delaysMs] = await Promise.all([call(sluice), readDelays(sluice, side.metric)])
  report({
    load: name,
    side: side.name,
    delayP99Ms: delaysMs,
    goalMs: GOALS_MS[name],
    calls,
    ...Object.fromEntries(await results),
    sluiceCores: Number(((sluice.cpuMicros() - cpuBefore) / SECONDS / 1e6).toFixed(2)),
    loadAverage: loadavg()[0]?.toFixed(1),
  })
}

function configOf(nodeUrl: string): string {
  const many = 1_000_000
  return [
    '[metrics]\nlisten = "127.0.0.1:0"',
    ...['rpc', 'ws', 'grpc'].map((name) => `[bundle.${name}]\nlisten = "127.0.0.1:0"`),
    `[sender]\nlisten = "127.0.0.1:0"\ntipAccounts = ${JSON.stringify(TIP_ACCOUNTS)}`,
    `[sender.limits]\nperAddressPerSecond = ${many}\nperAddressBurst = ${many}`,
    `perPayerPerSecond = ${many}\nperPayerBurst = ${many}`,
    `pendingMax = 100000\npendingPerAddressMax = 100000\npendingPerPayerMax = 100000`,
    '[shreds]\nenabled = false',
    '[execution]\nlisten = "127.0.0.1:0"\nsimulated = true',
    `[localnet.ring]\nblockMs = ${RING_BLOCK_MS}`,
    '[indexer]\nlisten = "127.0.0.1:0"',
    `[upstreams]\nallowPrivate = true\n[[upstreams.nodes]]\nname = "bench"\nrpc = "${nodeUrl}"`,
  ].join('\n')
}

async function call(sluice: SluiceProcess): Promise<PacedCallsReport> {
  const task: PacedCallsTask = {
    url: `http://127.0.0.1:${sluice.port('rpc')}`,
    token: sluice.token,
    connections: 32,
    perSecond: CALLS_PER_SECOND,
    seconds: SECONDS,
  }
  const script = join(import.meta.dirname, 'support/paced-calls-process.ts')
  await using caller = startPinned(ALL_CORES, process.execPath, [script, JSON.stringify(task)], {
    niceness: NICENESS,
  })
  return JSON.parse(await caller.firstLine()) as PacedCallsReport
}

/** The delay of each period, in milliseconds. */
async function readDelays(sluice: SluiceProcess, metric: string): Promise<number[]> {
  const delays: number[] = []
  await pause(PERIOD_SECONDS * 1000)
  while (delays.length < Number(values.windows)) {
    await pause(PERIOD_SECONDS * 1000)
    const text = await (await fetch(`http://127.0.0.1:${sluice.port('metrics')}/metrics`)).text()
    const line = text.split('\n').find((each) => each.startsWith(`${metric} `))
    if (line === undefined) throw new Error(`there is no ${metric}`)
    delays.push(Number((Number(line.split(' ').at(-1)) * 1000).toFixed(1)))
  }
  return delays
}

async function startStreamClients(sluice: SluiceProcess): Promise<Load> {
  const clients = await startWsReaders({
    program: readers,
    core: ALL_CORES,
    port: sluice.port('execution'),
    path: STREAM_PATH,
    clients: STREAM_CLIENTS,
    measureMs: SECONDS * 1000,
    niceness: NICENESS,
  })
  return {
    async result() {
      const { messages, seconds, closed } = await clients.measure()
      return { deliveriesPerSecond: Math.round(messages / seconds), closed }
    },
    [Symbol.asyncDispose]: () => clients[Symbol.asyncDispose](),
  }
}

/** Every result has a million rows: the product of three tables with a hundred rows each, since the node of this bench has no blocks. */
async function startAnalyst(sluice: SluiceProcess): Promise<Load> {
  const { username = '', password = '' } = sluice.login ?? {}
  const numbers = Array.from({ length: Math.cbrt(SQL_ROWS) }, (_, n) => n).join()
  const query = `WITH d AS (SELECT arrayJoin([${numbers}]) AS n) SELECT a.n, b.n AS m, c.n AS k, '${SQL_ROW_TEXT}' AS t FROM d a, d b, d c FORMAT JSONCompactEachRow`
  const words = ['-n', String(NICENESS), 'curl', '-s', '-o', '/dev/null', '-w', '%{http_code} %{size_download}']
  words.push('-u', `${username}:${password}`, '-H', `x-token: ${sluice.token}`, '--data-binary', query)
  words.push(`http://127.0.0.1:${sluice.port('indexer')}/`)
  let isOver = false
  const results: { status: string; bytes: number }[] = []
  async function repeat(): Promise<void> {
    while (!isOver) {
      const { stdout } = await promisify(execFile)('nice', words)
      const [status = '', bytes] = stdout.split(' ')
      results.push({ status, bytes: Number(bytes) })
      if (status !== '200') await pause(REPEAT_MS)
    }
  }
  const repeating = repeat()
  // A failure is reported by `result`; until then it must not end the bench, whose processes would go on without it.
  repeating.catch(() => {})
  return {
    async result() {
      const before = results.length
      await Promise.race([pause(SECONDS * 1000), repeating])
      const measured = results.slice(before)
      return {
        results: measured.filter(({ status }) => status === '200').length,
        failed: measured.filter(({ status }) => status !== '200').map(({ status }) => status),
        rows: SQL_ROWS,
        megabytes: Math.round(Math.max(0, ...measured.map(({ bytes }) => bytes)) / 1e6),
      }
    },
    async [Symbol.asyncDispose]() {
      isOver = true
      await Promise.allSettled([repeating])
    },
  }
}

async function startTransactions(sluice: SluiceProcess): Promise<Load> {
  const load = await startLoadProcess({
    url: `http://127.0.0.1:${sluice.port('sender')}`,
    addresses: ['127.0.0.1'],
    connections: 64,
    transactions: TRANSACTIONS_PER_SECOND * SECONDS,
    perSecond: TRANSACTIONS_PER_SECOND,
  })
  return {
    async result() {
      const { taken, seconds, other, others, checkDelayMsMax } = await load.run()
      return { acceptedPerSecond: Math.round(taken / seconds), checkDelayMsMax, other, others }
    },
    [Symbol.asyncDispose]: () => load[Symbol.asyncDispose](),
  }
}

function report(line: object): void {
  process.stdout.write(
    `${JSON.stringify({ bench: 'isolation', ...line, node: process.version, arch: process.arch })}\n`,
  )
}
