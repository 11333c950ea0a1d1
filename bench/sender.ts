import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism, cpus } from 'node:os'
import { scheduleThisThread } from '../src/platform/native/thread-schedule.ts'
import { collectOnlyDoubledHeaps } from '../src/platform/process/garbage-collection.ts'
import { encodeBase58 } from '../src/solana/crypto/base58.ts'
import { type SigningKey, verifyEd25519 } from '../src/solana/crypto/ed25519.ts'
import { parseTransaction } from '../src/solana/transaction/transaction.ts'
import { NODE_BLOCKHASH, type NodeTask } from '../test/support/sender/node.ts'
import { startSenderNode } from '../test/support/sender/process.ts'
import { hasPeer, type QuicPeer, startQuicPeer } from '../test/support/sender/quic-peer.ts'
import { startTestSender, tipped, walletOf } from '../test/support/sender/start.ts'
import { openPacedPosts } from './support/paced-posts.ts'
import { threadsOf, usePerItem } from './support/threads-of-process.ts'

/**
 * Transactions through the sender, each with a signature check, beside a minimal HTTP forwarder. Both run for the whole bench and take turns: the first
 * transactions after the start, at 500 and at 1,000 a second, and as many as one core can. Figures: the time from the client's first byte to the first
 * byte on each path, and the CPU of a transaction, by thread too. Both servers, the node and the leader each run in their own process. One JSON line per figure.
 *   node bench/sender.ts [seconds of a turn] [turns at each rate] [normal | raised]
 * With `raised`, sender and forwarder have the priority of `sender.priority = "raised"`.
 */
const SIGNATURE_LAST = 64
/** The Node option of the launcher. */
const AS_LAUNCHED = ['--max-semi-space-size=4']
const RATES = [500, 1000]
const CONNECTIONS = 64
/** Transactions in flight while the throughput is measured. */
const FULL_IN_FLIGHT = 32
const FULL_COUNT = 6000
const FIRST_SECONDS = 2
const KINDS = ['forwarder', 'sender'] as const
type Kind = (typeof KINDS)[number]

const [, , first = '5', second = '3', priority = 'normal'] = process.argv
if (priority !== 'normal' && priority !== 'raised') throw new Error(`the priority is normal or raised, not ${priority}`)
if (first === 'sender') await runSender(second)
else if (first === 'forwarder') await runForwarder(second)
else await runAll(Number(first), Number(second))

/** What one turn measured: latencies by path, and the CPU of the server under test, all of it and by thread. */
type Turn = {
  readonly tookMs: Readonly<Record<'http' | 'quic', readonly number[]>>
  readonly cpuMicros: number
  readonly threads: ReturnType<typeof usePerItem>
}
type Subject = { readonly kind: Kind; readonly child: ChildProcess; readonly url: string }
type Places = { readonly node: ChildProcess; readonly leader: QuicPeer | undefined }

async function runAll(turnSeconds: number, turns: number): Promise<void> {
  const perTurn = RATES.map((perSecond) => perSecond * turnSeconds)
  const count =
    (RATES[0] as number) * FIRST_SECONDS + 2 * FULL_COUNT + turns * perTurn.reduce((sum, one) => sum + one, 0)
  const wires = signedWires(count)
  write({ figure: 'machine', cpu: cpus()[0]?.model, cores: availableParallelism(), priority })
  write({ figure: 'parses per core and second', value: Math.round(1e6 / cpuMicrosOf(wires, parseTransaction)) })
  const checkMicros = checkMicrosOf(wires)
  write({ figure: 'CPU of one signature check', micros: Math.round(checkMicros) })
  await using leader = hasPeer('deno')
    ? await startQuicPeer('deno', { maxConcurrentUnidirectionalStreams: 512 })
    : undefined
  const task: NodeTask = leader && { identity: encodeBase58(leader.publicKey), port: leader.port }
  await using node = await startSenderNode(task)
  const places = { node: node.child, leader }
  await using opened = new AsyncDisposableStack()
  const subjects: Subject[] = []
  for (const kind of KINDS) subjects.push(await openSubject(kind, node.url, opened))

  const left = wires.values()
  const take = (n: number) => Array.from({ length: n }, () => left.next().value as Uint8Array)
  const onEach = async (
    of: readonly Uint8Array[],
    run: (subject: Subject, own: readonly Uint8Array[]) => Promise<void>,
  ) => {
    // The signature differs, because the node has already received the transactions through the other.
    for (const subject of subjects) await run(subject, subject.kind === 'sender' ? of : of.map(asAnother))
  }

  const firstRate = RATES[0] as number
  await onEach(take(firstRate * FIRST_SECONDS), async (subject, own) => {
    reportLatency(subject.kind, { perSecond: firstRate, when: `first ${FIRST_SECONDS} s` }, [
      await pacedTurn(subject, own, firstRate, places),
    ])
  })
  const cpuAtFull: Record<Kind, number> = { forwarder: 0, sender: 0 }
  // The first round is a warm-up.
  for (const isMeasured of [false, true])
    await onEach(take(FULL_COUNT), async (subject, own) => {
      const full = await fullTurn(subject, own)
      if (!isMeasured) return
      cpuAtFull[subject.kind] = full.cpuMicros
      write({ figure: 'transactions per core and second', of: subject.kind, ...full })
    })
  reportCpu('full load', cpuAtFull, checkMicros)

  for (const [at, perSecond] of RATES.entries()) {
    const measured: Record<Kind, Turn[]> = { forwarder: [], sender: [] }
    for (let turn = 0; turn < turns; turn++)
      await onEach(take(perTurn[at] as number), async (subject, own) => {
        measured[subject.kind].push(await pacedTurn(subject, own, perSecond, places))
      })
    const p99Ms = {} as Record<Kind, number>
    for (const kind of KINDS) p99Ms[kind] = reportLatency(kind, { perSecond, when: 'warm' }, measured[kind])
    write({
      figure: 'p99 of the sender by that of the forwarder',
      perSecond,
      ratio: round(p99Ms.sender / p99Ms.forwarder),
    })
    const { threads } = measured.sender.at(-1) as Turn
    write({ figure: 'CPU and wake-ups of a transaction by thread', perSecond, threads })
    const cpuOfTurns = (kind: Kind) => medianOf(measured[kind].map(({ cpuMicros }) => cpuMicros))
    reportCpu(perSecond, { forwarder: cpuOfTurns('forwarder'), sender: cpuOfTurns('sender') }, checkMicros)
  }
}

function signedWires(count: number): Uint8Array[] {
  const wallets = Array.from({ length: 64 }, (_, n) => walletOf(n))
  return Array.from({ length: count }, (_, n) =>
    tipped(wallets[n % wallets.length] as SigningKey, NODE_BLOCKHASH, `bench ${n}`),
  )
}

/** Parsing included, in microseconds of CPU. */
function checkMicrosOf(wires: readonly Uint8Array[]): number {
  const some = wires.slice(0, 1000)
  const check = (wire: Uint8Array) => {
    const parsed = parseTransaction(wire)
    if (!parsed.ok) throw new Error(parsed.reason)
    const { message, signatures, staticKeys } = parsed.transaction
    if (!verifyEd25519(message, signatures[0] as Uint8Array, staticKeys[0] as Uint8Array)) throw new Error('bad')
  }
  return cpuMicrosOf(some, check)
}

/** CPU of one call, in microseconds. */
function cpuMicrosOf<Item>(items: readonly Item[], run: (item: Item) => unknown): number {
  for (const item of items) run(item)
  const before = process.cpuUsage()
  for (const item of items) run(item)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / items.length
}

async function openSubject(kind: Kind, nodeUrl: string, opened: AsyncDisposableStack): Promise<Subject> {
  const child = fork(import.meta.filename, [kind, nodeUrl, priority], {
    execArgv: [...AS_LAUNCHED, ...process.execArgv],
  })
  opened.defer(async () => {
    child.disconnect()
    await once(child, 'exit')
  })
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  await untilWarm(child)
  return { kind, child, url }
}

function asAnother(wire: Uint8Array): Uint8Array {
  const other = Uint8Array.from(wire)
  other[SIGNATURE_LAST] = (other[SIGNATURE_LAST] as number) ^ 1
  return other
}

async function pacedTurn(
  { kind, child, url }: Subject,
  wires: readonly Uint8Array[],
  perSecond: number,
  { node, leader }: Places,
): Promise<Turn> {
  await arrivalsAt(node)
  // Opened for each turn: between the turns a server would close them as idle.
  using posts = await openPacedPosts(url, CONNECTIONS)
  const texts = wires.map((wire) => Buffer.from(wire).toString('base64'))
  const before = await cpuOf(child)
  const threadsBefore = threadsOf(child.pid as number)
  const sentMs = await posts.paced(texts.map(sendTransactionOf), perSecond)
  const threads = usePerItem(threadsBefore, threadsOf(child.pid as number), wires.length)
  const cpuMicros = ((await cpuOf(child)) - before) / wires.length
  const byText = await arrivalsAt(node)
  const http = texts.map((text, n) => (byText.get(text.slice(0, 86)) ?? Number.NaN) - (sentMs[n] as number))
  const byStart = kind === 'sender' ? await leader?.times() : undefined
  const quic = wires.map(
    (wire, n) => (byStart?.get(Buffer.from(wire).readUInt32BE(0)) ?? Number.NaN) - (sentMs[n] as number),
  )
  return { tookMs: { http, quic }, cpuMicros, threads }
}

async function fullTurn({ child, url }: Subject, wires: readonly Uint8Array[]) {
  using posts = await openPacedPosts(url, FULL_IN_FLIGHT)
  const bodies = wires.map((wire) => sendTransactionOf(Buffer.from(wire).toString('base64')))
  const before = await cpuOf(child)
  const threadsBefore = threadsOf(child.pid as number)
  const seconds = await posts.full(bodies, FULL_IN_FLIGHT)
  const threads = usePerItem(threadsBefore, threadsOf(child.pid as number), wires.length)
  const cpuMicros = ((await cpuOf(child)) - before) / wires.length
  return {
    value: Math.round(1e6 / cpuMicros),
    cpuMicros: Math.round(cpuMicros),
    perSecond: Math.round(wires.length / seconds),
    threads,
  }
}

/** Writes the median over the turns of each percentile. Returns the p99 over HTTP. */
function reportLatency(kind: Kind, of: object, turns: readonly Turn[]): number {
  let httpP99Ms = Number.NaN
  for (const path of ['http', 'quic'] as const) {
    const sorted = turns.map(({ tookMs }) => tookMs[path].filter(Number.isFinite).sort((a, b) => a - b))
    if (sorted.every(({ length }) => length === 0)) continue
    const at = (share: number) => sorted.map((one) => one[Math.floor(one.length * share)] ?? Number.NaN)
    const p99Ms = at(0.99).map(round)
    if (path === 'http') httpP99Ms = medianOf(p99Ms)
    write({
      figure: "from the client's first byte to the path's first byte",
      from: kind,
      path,
      ...of,
      p50Ms: round(medianOf(at(0.5))),
      p99Ms: medianOf(p99Ms),
      p999Ms: round(medianOf(at(0.999))),
      p99MsOfTurns: p99Ms,
      arrived: sorted.reduce((sum, { length }) => sum + length, 0),
      of: turns.reduce((sum, { tookMs }) => sum + tookMs[path].length, 0),
    })
  }
  return httpP99Ms
}

function reportCpu(at: number | string, { forwarder, sender }: Record<Kind, number>, check: number): void {
  write({
    figure: 'CPU of a transaction, in microseconds',
    at,
    forwarder: Math.round(forwarder),
    check: Math.round(check),
    sender: Math.round(sender),
    ratio: round(sender / (forwarder + check)),
  })
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

function sendTransactionOf(text: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["${text}",{"encoding":"base64","skipPreflight":true,"maxRetries":0}]}`
}

async function arrivalsAt(node: ChildProcess): Promise<Map<string, number>> {
  node.send('?')
  const [arrivals] = (await once(node, 'message')) as [[string, number][]]
  return new Map(arrivals)
}

async function runSender(nodeUrl: string): Promise<void> {
  await schedule()
  // As the process does.
  collectOnlyDoubledHeaps()
  const many = 1_000_000
  await using sender = await startTestSender({
    nodes: [{ name: 'node', rpc: nodeUrl }],
    isWarmedUp: true,
    limits: {
      perAddressPerSecond: many,
      perAddressBurst: many,
      perPayerPerSecond: many,
      perPayerBurst: many,
      pendingMax: many,
      pendingPerAddressMax: many,
      pendingPerPayerMax: many,
      checkingMax: 4096,
      checkDelayMsMax: 10_000,
      receiptsMax: many,
    },
    checkThreads: Math.max(1, availableParallelism() - 1),
    quic: { allowPrivate: true, perLeaderPerSecond: 10_000 },
  })
  await serveQuestions(sender.url, () => sender.sender.paths().every(({ isOpen }) => isOpen))
}

async function schedule(): Promise<void> {
  const { refused } = await scheduleThisThread({ priority: priority as 'normal' | 'raised' }, 1)
  if (refused.length > 0) throw new Error(refused.join('; '))
}

/** The minimal forwarder: passes body and response on unchanged. */
async function runForwarder(nodeUrl: string): Promise<void> {
  await schedule()
  const { hostname, port } = new URL(nodeUrl)
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const server = createServer((incoming, response) => {
    const call = request(
      {
        hostname,
        port,
        agent,
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': incoming.headers['content-length'] ?? 0 },
      },
      (reply) => {
        response.writeHead(reply.statusCode ?? 500, { 'content-type': 'application/json' })
        reply.pipe(response)
      },
    )
    call.on('error', () => response.destroy())
    incoming.pipe(call)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await serveQuestions(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => true)
}

async function serveQuestions(url: string, isWarm: () => boolean): Promise<void> {
  process.send?.({ url })
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.({ cpu: user + system, isWarm: isWarm() })
  })
  await once(process, 'disconnect')
  process.exit(0)
}

async function ask(child: ChildProcess): Promise<{ readonly cpu: number; readonly isWarm: boolean }> {
  child.send('?')
  const [response] = (await once(child, 'message')) as [{ cpu: number; isWarm: boolean }]
  return response
}

async function cpuOf(child: ChildProcess): Promise<number> {
  return (await ask(child)).cpu
}

/** Waits until every path is open, or for the maximum duration of a connection to a leader. */
async function untilWarm(child: ChildProcess): Promise<void> {
  for (let looks = 0; looks < 50 && !(await ask(child)).isWarm; looks++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

function write(value: object): void {
  process.stdout.write(`${JSON.stringify({ bench: 'sender', ...value })}\n`)
}
