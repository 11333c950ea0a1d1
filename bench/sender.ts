import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism, cpus } from 'node:os'
import { encodeBase58 } from '../src/solana/crypto/base58.ts'
import { type SigningKey, verifyEd25519 } from '../src/solana/crypto/ed25519.ts'
import { parseTransaction } from '../src/solana/transaction/transaction.ts'
import { hasPeer, type QuicPeer, startQuicPeer } from '../test/support/quic-peer.ts'
import { startTestSender, tipped, walletOf } from '../test/support/sender.ts'
import { type LoadResponse, openSenderLoad, sendTransactionBody } from '../test/support/sender-load.ts'
import { NODE_BLOCKHASH, type NodeTask } from '../test/support/sender-node.ts'
import { startSenderNode } from '../test/support/sender-process.ts'

/**
 * Transactions through the sender, each with a signature check, compared with a minimal HTTP forwarder: the maximum throughput of one core, and at
 * a third of that the time from the client's first byte to the first byte on each path. Server under test, node and leader each run in their own
 * process. The first half of the transactions is a warm-up. One JSON line per figure.
 *   node bench/sender.ts [transactions] [connections]
 */
const SIGNATURE_LAST = 64
/** The Node option of the launcher. */
const AS_LAUNCHED = ['--max-semi-space-size=4']
const [, , first = '16000', second = '32'] = process.argv
if (first === 'sender') await runSender(second)
else if (first === 'forwarder') await runForwarder(second)
else await runAll(Number(first), Number(second))

async function runAll(count: number, connections: number): Promise<void> {
  const wallets = Array.from({ length: 64 }, (_, n) => walletOf(n))
  const wires = Array.from({ length: count }, (_, n) =>
    tipped(wallets[n % wallets.length] as SigningKey, NODE_BLOCKHASH, `bench ${n}`),
  )
  const checkMicros = microsOf(wires.slice(0, 1000), (wire) => {
    const parsed = parseTransaction(wire)
    if (!parsed.ok) throw new Error(parsed.reason)
    const { message, signatures, staticKeys } = parsed.transaction
    if (!verifyEd25519(message, signatures[0] as Uint8Array, staticKeys[0] as Uint8Array)) throw new Error('bad')
  })
  write({ figure: 'machine', cpu: cpus()[0]?.model, cores: availableParallelism() })
  write({ figure: 'parses per core and second', value: Math.round(1e6 / microsOf(wires, parseTransaction)) })
  write({ figure: 'CPU of one signature check', micros: Math.round(checkMicros) })
  await using leader = hasPeer('deno')
    ? await startQuicPeer('deno', { maxConcurrentUnidirectionalStreams: 512 })
    : undefined
  const task: NodeTask = leader && { identity: encodeBase58(leader.publicKey), port: leader.port }
  await using node = await startSenderNode(task)
  for (const kind of ['forwarder', 'sender'] as const) {
    const child = fork(import.meta.filename, [kind, node.url], { execArgv: [...AS_LAUNCHED, ...process.execArgv] })
    try {
      const own = kind === 'sender' ? wires : wires.map(asAnother)
      await measure(kind, { child, node: node.child, leader, wires: own, connections, checkMicros })
    } finally {
      child.disconnect()
      await once(child, 'exit')
    }
  }
}

/** Changes the signature, because the node has already received the transactions through the forwarder. */
function asAnother(wire: Uint8Array): Uint8Array {
  const other = Uint8Array.from(wire)
  other[SIGNATURE_LAST] = (other[SIGNATURE_LAST] as number) ^ 1
  return other
}

type Bench = {
  readonly child: ChildProcess
  readonly node: ChildProcess
  readonly leader: QuicPeer | undefined
  readonly wires: readonly Uint8Array[]
  readonly connections: number
  readonly checkMicros: number
}

async function measure(kind: 'forwarder' | 'sender', on: Bench): Promise<void> {
  const { child, node, leader, wires, connections, checkMicros } = on
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  if (kind === 'sender') await untilWarm(child)
  using load = openSenderLoad(url, connections)
  const [warm, full, paced] = [
    wires.slice(0, wires.length / 2),
    wires.slice(wires.length / 2, -wires.length / 8),
    wires.slice(-wires.length / 8),
  ]
  await sendAll(load.post, warm, connections)
  const before = await cpuOf(child)
  const seconds = await sendAll(load.post, full, connections)
  const cpuMicros = ((await cpuOf(child)) - before) / full.length
  write({
    figure: 'transactions per core and second',
    of: kind,
    value: Math.round(1e6 / cpuMicros),
    cpuMicros: Math.round(cpuMicros),
    ...(kind === 'sender' ? { cpuMicrosBesideTheCheck: Math.round(cpuMicros - checkMicros) } : {}),
    perSecond: Math.round(full.length / seconds),
  })
  await arrivalsAt(node)
  const sentMs = await sendPaced(load.post, paced, full.length / seconds / 3)
  const byText = await arrivalsAt(node)
  report(kind, 'http', sentMs, (wire) => byText.get(textOf(wire).slice(0, 86)))
  if (kind === 'forwarder' || leader === undefined) return
  const byStart = await leader.times()
  report(kind, 'quic', sentMs, (wire) => byStart.get(Buffer.from(wire).readUInt32BE(0)))
}

function report(
  kind: string,
  path: 'http' | 'quic',
  sentMs: ReadonlyMap<Uint8Array, number>,
  arrivedMs: (wire: Uint8Array) => number | undefined,
): void {
  const tookMs = [...sentMs].flatMap(([wire, atMs]) => (arrivedMs(wire) ?? Number.NaN) - atMs).filter(Number.isFinite)
  const sorted = tookMs.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 100) / 100
  const figures = { p50Ms: at(0.5), p99Ms: at(0.99), arrived: sorted.length, of: sentMs.size }
  write({ figure: "from the client's first byte to the path's first byte", from: kind, path, ...figures })
}

/** CPU of one call, in microseconds. */
function microsOf<Item>(items: readonly Item[], run: (item: Item) => unknown): number {
  for (const item of items) run(item)
  const before = process.cpuUsage()
  for (const item of items) run(item)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / items.length
}

function textOf(wire: Uint8Array): string {
  return Buffer.from(wire).toString('base64')
}

type Post = (body: string) => Promise<LoadResponse>

async function sendOne(post: Post, wire: Uint8Array): Promise<void> {
  const { body } = await post(sendTransactionBody(wire))
  if (!body.includes('"result"')) throw new Error(body)
}

/** Closed loop: sends the next transaction after each response. Returns the duration in seconds. */
async function sendAll(post: Post, wires: readonly Uint8Array[], connections: number): Promise<number> {
  const startedMs = performance.now()
  const left = wires.values()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (const wire of left) await sendOne(post, wire)
    }),
  )
  return (performance.now() - startedMs) / 1000
}

/** Open loop: sends at a fixed rate. Returns the send times in unix milliseconds. */
async function sendPaced(post: Post, wires: readonly Uint8Array[], perSecond: number) {
  const sentMs = new Map<Uint8Array, number>()
  const startedMs = performance.now()
  const responses: Promise<void>[] = []
  for (const [n, wire] of wires.entries()) {
    const waitMs = startedMs + (n * 1000) / perSecond - performance.now()
    if (waitMs > 1) await new Promise((resolve) => setTimeout(resolve, waitMs))
    sentMs.set(wire, performance.timeOrigin + performance.now())
    responses.push(sendOne(post, wire))
  }
  await Promise.all(responses)
  return sentMs
}

async function arrivalsAt(node: ChildProcess): Promise<Map<string, number>> {
  node.send('?')
  const [arrivals] = (await once(node, 'message')) as [[string, number][]]
  return new Map(arrivals)
}

async function runSender(nodeUrl: string): Promise<void> {
  const many = 1_000_000
  await using sender = await startTestSender({
    nodes: [{ name: 'node', rpc: nodeUrl }],
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

/** The minimal forwarder: passes body and response on unchanged. */
async function runForwarder(nodeUrl: string): Promise<void> {
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
