import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { openControlClient } from '../../../src/platform/process/control-client.ts'
import type { ControlProtocol } from '../../../src/processes/compose/process/control-protocol.ts'
import { sluiceHere } from '../cli/in-process.ts'
import { temporaryFolder } from '../cli/run.ts'
import { CLICKHOUSE_ADMIN } from '../indexer/clickhouse.ts'
import { DATA_PASSWORDS, DATA_PORTS } from '../machine/data-machine.ts'
import { SWITCH_ADDRESS } from '../machine/namespaces.ts'
import { serve } from '../process/serve.ts'
import { startQuickLocalnet } from '../solana/localnet.ts'

/** Results of the calls of a customer. A refusal by a limit is `limited`; every unexpected result is a line in `failed`. */
export type Outcome = { responded: number; limited: number; refused: number; failed: string[] }

/** This many callers, each pausing between its requests; `batch` calls in each request. */
export type Callers = {
  readonly token: string
  readonly callers: number
  readonly everyMs: number
  readonly batch: number
}

export type Health = {
  readonly state: string
  readonly reasons: readonly { readonly part: string; readonly reason: string }[]
}

/** Costs one unit on every plan. */
const METHOD = 'getBalance'
/** The JSON-RPC code of a refusal that names a limit. */
const LIMITED = -32429
/** Error lines kept; one is enough to fail. */
const FAILED_MAX = 20

/** A machine with its own node and a `sluice serve` process, on the databases of the data machine; customers and the operator use it. */
export async function startGatewayMachine({ ingests }: { ingests: boolean }) {
  await using opening = new AsyncDisposableStack()
  const home = opening.use(await temporaryFolder())
  const chain = ingests
    ? opening.use(await startQuickLocalnet({ slotMs: 250, traffic: { enabled: true, tps: 4 } }))
    : undefined
  const node = opening.use(await startCountingNode(chain && `http://127.0.0.1:${chain.rpc.port}`))
  for (const [name, secret] of Object.entries({ ...DATA_PASSWORDS, clickhouse: CLICKHOUSE_ADMIN.password })) {
    writeFileSync(home.file(name), secret)
    chmodSync(home.file(name), 0o600)
  }
  writeFileSync(home.file('sluice.toml'), config({ ingests, rpc: node.url, grpcPort: chain?.grpc.port }))
  const state = home.file('.sluice')
  const running = opening.use(
    serve({ cwd: home.path, args: ['--no-demo'], env: { SLUICE_INDEXER__ENABLED: 'true' }, workers: 2 }),
  )
  await running.line(/"msg":"started"/)
  const rpc = `http://${await running.address('rpc')}`
  const indexer = `http://${await running.address('indexer')}`
  const pubsub = `ws://${await running.address('ws')}`
  const sockets = new Set<WebSocket>()
  const callers = new Map<string, { readonly outcome: Outcome; stop(): Promise<Outcome> }>()
  const sluice = (...words: string[]) =>
    sluiceHere([...words, '--state', state, '--config', home.file('sluice.toml')], {})

  /** As a customer whose calls the node counts under this name; several in one batch. */
  function ask(token: string, name: string, batch = 1): Promise<Response> {
    const call = (id: number) => ({ jsonrpc: '2.0', id, method: METHOD, params: [name] })
    const body = JSON.stringify(batch === 1 ? call(1) : Array.from({ length: batch }, (_, at) => call(at)))
    const headers = { 'content-type': 'application/json', 'x-token': token }
    return fetch(rpc, { method: 'POST', headers, body, signal: AbortSignal.timeout(30_000) })
  }

  function startCallers(name: string, { token, callers, everyMs, batch }: Callers) {
    const outcome: Outcome = { responded: 0, limited: 0, refused: 0, failed: [] }
    let isOver = false
    function count(status: number, text: string): void {
      const items = ([JSON.parse(text)] as unknown[]).flat() as { result?: unknown; error?: { code: number } }[]
      for (const { result, error } of items) {
        if (result !== undefined) outcome.responded++
        else if (error?.code === LIMITED) outcome.limited++
        else if (status === 401) outcome.refused++
        else if (outcome.failed.length < FAILED_MAX) outcome.failed.push(`${status} ${text}`)
      }
    }
    const loops = Array.from({ length: callers }, async () => {
      while (!isOver) {
        try {
          const response = await ask(token, name, batch)
          count(response.status, await response.text())
        } catch (error) {
          if (outcome.failed.length < FAILED_MAX) outcome.failed.push(String(error))
        }
        await pause(everyMs)
      }
    })
    return {
      outcome,
      async stop() {
        isOver = true
        await Promise.all(loops)
        return outcome
      },
    }
  }

  /** Resolves when the connection is open or refused. */
  function connect(token: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const socket = new WebSocket(pubsub, { headers: { 'x-token': token } })
    socket.on('open', () => {
      sockets.add(socket)
      resolve()
    })
    socket.on('error', () => resolve())
    socket.on('close', () => void sockets.delete(socket))
    return promise
  }
  opening.defer(() => sockets.forEach((socket) => socket.terminate()))

  const opened = opening.move()
  return {
    calls: {
      /** Opens so many WebSocket connections at once; returns how many are open now. */
      async connect(token: string, attempts: number): Promise<number> {
        await Promise.all(Array.from({ length: attempts }, () => connect(token)))
        return sockets.size
      },
      disconnect(): void {
        for (const socket of sockets) socket.terminate()
        sockets.clear()
      },
      sluice,
      /** The status of one call, and the budget in its headers. */
      async ask(token: string, name: string): Promise<{ status: number; limit: number }> {
        const response = await ask(token, name)
        await response.text()
        return { status: response.status, limit: Number(response.headers.get('x-ratelimit-limit')) }
      },
      /** Customers that call until they are stopped. */
      start(name: string, given: Callers): void {
        callers.set(name, startCallers(name, given))
      },
      outcome: (name: string) => callers.get(name)?.outcome,
      async stop(name: string): Promise<Outcome> {
        const stopped = await callers.get(name)?.stop()
        if (stopped === undefined) throw new Error(`no calls run as ${name}`)
        return stopped
      },
      /** Calls received by the node, by the name in their params. */
      forwarded: (): Record<string, number> => Object.fromEntries(node.calls),
      /** As `sluice status` shows it. */
      async health(): Promise<Health> {
        using client = await openControlClient<ControlProtocol>(join(state, 'control.sock'))
        return await client.call('status')
      },
      async query(headers: Record<string, string>, sql: string) {
        const response = await fetch(indexer, {
          method: 'POST',
          headers,
          body: sql,
          signal: AbortSignal.timeout(30_000),
        })
        const coverage = response.headers.get('x-sluice-coverage-slot')
        return {
          status: response.status,
          text: await response.text(),
          coverage: coverage === null ? undefined : Number(coverage),
        }
      },
      tipSlot: () => chain?.chain.slot('confirmed') ?? 0,
      isAlive: () => running.child.exitCode === null && running.child.signalCode === null,
      end: () => running.stop('SIGTERM'),
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...callers.values()].map((each) => each.stop()))
      await opened.disposeAsync()
    },
  }
}

export type GatewayMachine = Awaited<ReturnType<typeof startGatewayMachine>>['calls']

/** As docs/operating.md shows it for several machines. */
function config(given: { ingests: boolean; rpc: string; grpcPort: number | undefined }): string {
  const grpc = given.grpcPort === undefined ? '' : `grpc = "http://127.0.0.1:${given.grpcPort}"`
  return `
[access]
store = { engine = "postgres", url = "postgres://sluice@${SWITCH_ADDRESS}:${DATA_PORTS.postgres}/sluice?sslmode=disable", password = "file:postgres" }

[access.quota.shared]
url = "redis://${SWITCH_ADDRESS}:${DATA_PORTS.redis}"
password = "file:redis"
processesAssumed = 2

[[upstreams.nodes]]
name = "node"
rpc = "${given.rpc}"
${grpc}
allowPrivate = true

[indexer]
engine = "clickhouse"

[indexer.clickhouse]
url = "http://${SWITCH_ADDRESS}:${DATA_PORTS.clickhouse}"
user = "${CLICKHOUSE_ADMIN.user}"
password = "file:clickhouse"

[indexer.ingest]
enabled = ${given.ingests}
batchMs = 200
`
}

type Question = { method: string; params?: unknown[]; id: unknown }

/** The slot of a node without a chain. */
const SLOT = 1000

/** Responds to the customers' calls itself and counts them by the name in their params; forwards everything else to the chain, where there is one. */
async function startCountingNode(chain: string | undefined) {
  const calls = new Map<string, number>()
  const server = createServer((request, response) => void respond(request, response))
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const text = Buffer.concat(pieces).toString()
    const asked = JSON.parse(text) as Question | Question[]
    response.setHeader('content-type', 'application/json')
    if ([asked].flat().every(({ method }) => method !== METHOD) && chain !== undefined) {
      const headers = { 'content-type': 'application/json' }
      const reported = await fetch(chain, { method: 'POST', headers, body: text }).catch(() => undefined)
      response.statusCode = reported?.status ?? 502
      response.end(await reported?.text())
    } else response.end(JSON.stringify(Array.isArray(asked) ? asked.map(respondToOne) : respondToOne(asked)))
  }

  function respondToOne({ method, params, id }: Question): object {
    if (method !== METHOD) return { jsonrpc: '2.0', result: SLOT, id }
    const name = String(params?.[0])
    calls.set(name, (calls.get(name) ?? 0) + 1)
    return { jsonrpc: '2.0', result: { context: { slot: SLOT }, value: 7 }, id }
  }

  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}
