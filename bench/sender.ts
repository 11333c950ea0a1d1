import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cpus } from 'node:os'
import { encodeBase58 } from '../src/solana/base58.ts'
import { parseTransaction } from '../src/solana/transaction.ts'
import { hasPeer, startQuicPeer } from '../test/support/quic-peer.ts'
import { startTestSender, tipped, walletOf } from '../test/support/sender.ts'

/**
 * Transactions through the sender, each with its signature checked, against a bare HTTP forwarder: what a core carries, and how long a
 * transaction takes from the client's first byte to each path. Server under test in a process of its own; client, node and leader here.
 *   node bench/sender.ts [transactions] [connections]
 */
const [, , first = '5000', second = '32'] = process.argv
if (first === 'sender') await runSender(second)
else if (first === 'forwarder') await runForwarder(second)
else await runAll(Number(first), Number(second))

async function runAll(count: number, connections: number): Promise<void> {
  const blockhash = encodeBase58(new Uint8Array(32).fill(3))
  const wires = Array.from({ length: count }, (_, n) => tipped(walletOf(n % 64), blockhash, `bench ${n}`))
  say({ what: 'parser', cpu: cpus()[0]?.model, parsesPerSecond: parseRate(wires) })
  await using leader = hasPeer('deno')
    ? await startQuicPeer('deno', { maxConcurrentUnidirectionalStreams: 512 })
    : undefined
  const node = await startNode(
    leader === undefined ? undefined : { identity: encodeBase58(leader.publicKey), port: leader.port },
  )
  for (const kind of ['forwarder', 'sender'] as const) {
    const child = fork(import.meta.filename, [kind, node.url], { execArgv: [...process.execArgv] })
    try {
      const [{ url }] = (await once(child, 'message')) as [{ url: string }]
      if (kind === 'sender') await untilWarm(child)
      await load(url, wires.slice(0, Math.min(500, count / 10)), connections, node.arrivals, 'warm')
      const before = await ask(child)
      const run = await load(url, wires.slice(Math.min(500, count / 10)), connections, node.arrivals, kind)
      const after = await ask(child)
      const cpuSeconds = (after.cpu - before.cpu) / 1e6
      say({
        what: kind,
        ...run,
        perCore: Math.round(run.sent / cpuSeconds),
        ...(kind === 'sender' ? { metrics: after.metrics } : {}),
      })
    } finally {
      child.disconnect()
      await once(child, 'exit')
    }
  }
  if (leader !== undefined) say({ what: 'leader', ...(await leader.report()) })
  node.close()
}

function parseRate(wires: readonly Uint8Array[]): number {
  const untilMs = performance.now() + 1000
  let parses = 0
  while (performance.now() < untilMs)
    for (const wire of wires.slice(0, 1000)) if (parseTransaction(wire).ok) parses += 1
  return parses
}

/** Sends each transaction once over kept connections. */
async function load(
  url: string,
  wires: readonly Uint8Array[],
  connections: number,
  arrivals: Map<string, number>,
  name: string,
) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const { hostname, port } = new URL(url)
  const tookMs: number[] = []
  const toNodeMs: number[] = []
  let next = 0
  const startedMs = performance.now()
  const work = async () => {
    for (let at = next++; at < wires.length; at = next++) {
      const text = Buffer.from(wires[at] as Uint8Array).toString('base64')
      const body = `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["${text}",{"encoding":"base64","skipPreflight":true,"maxRetries":0}]}`
      const fromMs = performance.now()
      const answer = await post({ hostname, port, agent }, body)
      if (!answer.includes('"result"')) throw new Error(`${name}: ${answer}`)
      tookMs.push(performance.now() - fromMs)
      const arrivedMs = arrivals.get(text.slice(0, 86))
      if (arrivedMs !== undefined) toNodeMs.push(arrivedMs - fromMs)
    }
  }
  await Promise.all(Array.from({ length: connections }, work))
  agent.destroy()
  arrivals.clear()
  const seconds = (performance.now() - startedMs) / 1000
  return {
    sent: wires.length,
    perSecond: Math.round(wires.length / seconds),
    ...quantiles(tookMs),
    toNode: quantiles(toNodeMs),
  }
}

function post(to: { hostname: string; port: string; agent: Agent }, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(
      { ...to, method: 'POST', headers: { 'content-type': 'application/json', 'content-length': body.length } },
      (response) => {
        let text = ''
        response.on('data', (chunk) => (text += String(chunk)))
        response.on('end', () => resolve(text))
      },
    )
    call.on('error', reject)
    call.end(body)
  })
}

/** A node that takes everything and notes when, and that knows one leader. */
async function startNode(leader: { identity: string; port: number } | undefined) {
  const arrivals = new Map<string, number>()
  let slot = 1000
  const answers: Record<string, () => unknown> = {
    getSlot: () => slot++,
    isBlockhashValid: () => ({ context: { slot }, value: true }),
    getClusterNodes: () =>
      leader === undefined ? [] : [{ pubkey: leader.identity, tpuQuic: `127.0.0.1:${leader.port}` }],
    getSlotLeaders: () => Array.from({ length: 1000 }, () => leader?.identity ?? ''),
  }
  const server = createServer((incoming, response) => void answer(incoming, response))
  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const atMs = performance.now()
    let text = ''
    for await (const chunk of incoming) text += String(chunk)
    const { method, params } = JSON.parse(text) as { method: string; params: [string] }
    if (method === 'sendTransaction' && !arrivals.has(params[0].slice(0, 86)))
      arrivals.set(params[0].slice(0, 86), atMs)
    const result =
      method === 'getSignatureStatuses'
        ? { context: { slot }, value: (params[0] as unknown as string[]).map(() => null) }
        : (answers[method]?.() ?? 'x')
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    close: () => server.close().closeAllConnections(),
  }
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
      checkingMax: 4096,
      receiptsMax: many,
    },
    resendMs: 60_000,
    quic: { allowPrivate: true, perLeaderPerSecond: 10_000 },
  })
  await serveQuestions(
    sender.url,
    async () => {
      const text = await sender.registry.text()
      return text
        .split('\n')
        .filter((line) =>
          /^sluice_sender_(first_(dispatch|answer)_seconds_(bucket.*le="0\.0[02]\d*"|count)|attempts_total)/.test(line),
        )
    },
    () => sender.sender.paths(),
  )
}

/** The least that can be done: the body goes on as it came, the answer comes back as it is. */
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
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, { 'content-type': 'application/json' })
        answer.pipe(response)
      },
    )
    call.on('error', () => response.destroy())
    incoming.pipe(call)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await serveQuestions(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async () => [],
    () => [],
  )
}

type Answer = {
  readonly cpu: number
  readonly metrics: readonly string[]
  readonly paths: readonly { path: string; isOpen: boolean }[]
}

async function serveQuestions(
  url: string,
  metrics: () => Promise<string[]>,
  paths: () => Answer['paths'],
): Promise<void> {
  process.send?.({ url })
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    void metrics().then((lines) =>
      process.send?.({ cpu: user + system, metrics: lines, paths: paths() } satisfies Answer),
    )
  })
  await once(process, 'disconnect')
  process.exit(0)
}

async function ask(child: ChildProcess): Promise<Answer> {
  child.send('?')
  const [answer] = (await once(child, 'message')) as [Answer]
  return answer
}

/** Until every path is open, or for as long as a leader's connection may take. */
async function untilWarm(child: ChildProcess): Promise<void> {
  for (let looks = 0; looks < 50 && !(await ask(child)).paths.every(({ isOpen }) => isOpen); looks++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

function quantiles(values: number[]): { p50Ms: number; p99Ms: number } {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 100) / 100
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}

function say(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}
