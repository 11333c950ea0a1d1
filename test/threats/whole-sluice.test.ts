import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { refusedHandshake } from '../support/execution/stream-reader.ts'
import { rawCall } from '../support/gateway/grpc.ts'
import { openWsTestClient } from '../support/gateway/ws-client.ts'
import { createRandom, seedOf } from '../support/process/property.ts'
import { serve } from '../support/process/serve.ts'
import { oddRequest, sendOdd } from './odd-requests.ts'
import { type RunningSluice, type SluiceCustomer, startSluice } from './whole-sluice.ts'

/** Threats to the whole process: `sluice serve` with every service enabled. */

const METHODS = 10_000
const SERIES_MAX = 2000
const ODD_REQUESTS = 2000
const AT_ONCE = 16

/** Texts that would forge a line, move the cursor or reverse the text. */
const HOSTILE = [
  ...['\u001b[2J\u001b[31mred', 'x\n{"level":"error","msg":"forged"}\n', '\r\nnext', '\u009b31m', '\u2028line'],
  ...['\u202eback', '\u0007\u0000'],
]

let sluice: RunningSluice
let customer: SluiceCustomer
before(async () => {
  sluice = await startSluice({ nodeMessage: HOSTILE.join(' ') })
  customer = await sluice.subscribe('prod')
})
after(() => sluice?.[Symbol.asyncDispose]())

const post = async (body: string): Promise<string> => {
  const headers = { 'content-type': 'application/json', 'x-token': customer.token }
  return (await fetch(sluice.servers.rpc, { method: 'POST', headers, body })).text()
}
const grpcCall = (path: string) => {
  const port = Number(sluice.gateway.grpc.split(':')[1])
  return rawCall(port, path, [['x-token', customer.token]], frameMessage(Buffer.alloc(0)))
}

test('T15: an id of another customer gets the same response as an unknown one, at every endpoint that takes an id', async () => {
  const stranger = await sluice.subscribe('stranger')
  const { ws, token } = { ws: sluice.gateway.ws, token: customer.token }
  const theirs = await openWsTestClient(ws, { 'x-token': token })
  const mine = await openWsTestClient(ws, { 'x-token': stranger.token })
  const subscription = (await theirs.call('rootSubscribe')).result as number
  const { connections } = (await (
    await fetch(`${sluice.servers.rpc}/v1/connections`, { headers: { 'x-token': token } })
  ).json()) as { connections: { id: string }[] }
  const ticketOf = async (given: string) => {
    const response = await fetch(`${sluice.servers.rpc}/v1/ws-ticket`, {
      method: 'POST',
      headers: { 'x-token': given },
    })
    return ((await response.json()) as { ticket: string }).ticket
  }
  const ownTicket = await ticketOf(stranger.token)
  const reported = async (response: Response) => {
    const text = (await response.text()).replace(/"request_id":"[^"]*"/, '')
    return `${response.status} ${text}`
  }
  /** The stranger's own ticket with the name of another in it: expiry, the hash of the token, and a seal over both. */
  const ticketFor = (digest: Buffer) => {
    const bytes = Buffer.from(ownTicket.slice(4), 'base64url')
    digest.copy(bytes, 6)
    return `wst_${bytes.toString('base64url')}`
  }
  const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
  const sql = (fields: string, body: string) =>
    fetch(`${sluice.servers.indexer}/?${fields}`, { method: 'POST', headers: stranger.indexer, body })
  const running = fetch(`${sluice.servers.indexer}/?query_id=theirs&max_execution_time=2`, {
    method: 'POST',
    headers: customer.indexer,
    body: heavyQuery(),
  })
  running.catch(() => {})

  const positions: Readonly<Record<string, { ask: (id: string) => Promise<string>; foreign: string; absent: string }>> =
    {
      'POST /v1/connections/{id}/close': {
        ask: async (id) => {
          const init = { method: 'POST', headers: { 'x-token': stranger.token } }
          return reported(await fetch(`${sluice.servers.rpc}/v1/connections/${id}/close`, init))
        },
        foreign: connections[0]?.id ?? '',
        absent: 'con_000000000000000000000000',
      },
      'rootUnsubscribe over WebSocket': {
        ask: async (id) => JSON.stringify((await mine.call('rootUnsubscribe', [Number(id)])).error),
        foreign: `${subscription}`,
        absent: `${subscription + 1000}`,
      },
      'a ticket that names another customer': {
        ask: (id) => refused(`${ws}/?ticket=${ticketFor(Buffer.from(id, 'hex'))}`, upgrade),
        foreign: createHash('sha256').update(token).digest('hex'),
        absent: '00'.repeat(32),
      },
      'a ticket of another customer beside the own token': {
        ask: (id) => refused(`${ws}/?ticket=${id}`, { ...upgrade, 'x-token': stranger.token }),
        foreign: await ticketOf(token),
        absent: ticketFor(Buffer.alloc(32)),
      },
      'KILL QUERY': {
        ask: async (id) => reported(await sql('', `KILL QUERY WHERE query_id = '${id}'`)),
        foreign: 'theirs',
        absent: 'nobodys',
      },
      'a query under the id of another': {
        ask: async (id) => reported(await sql(`query_id=${id}&replace_running_query=1`, 'SELECT 1')),
        foreign: 'theirs',
        absent: 'nobodys',
      },
    }
  for (const [position, { ask, foreign, absent }] of Object.entries(positions)) {
    const response = await ask(absent)
    assert.notEqual(foreign, '', position)
    assert.equal(await ask(foreign), response, position)
    if (position.includes('{id}')) assert.match(response, /^404 /, position)
  }
  assert.match(await reported(await running), /Code: 159/, 'the query of the other ran until its own time was over')
  assert.equal(theirs.socket.readyState, theirs.socket.OPEN)
  assert.equal((await theirs.call('rootUnsubscribe', [subscription])).result, true)
  theirs.socket.terminate()
  mine.socket.terminate()

  // Receipts are public by design: signatures are public on the chain. So are blocks and contracts. No other path of a customer takes an id; those of the
  // admin API are for administrators, and `src/admin/service.test.ts` refuses every other token there.
  const described = globSync(join(import.meta.dirname, '../../docs/openapi/*.json'))
  assert.ok(described.some((file) => file.endsWith('admin.json')))
  const takesId = described.flatMap((file) => {
    if (file.endsWith('admin.json')) return []
    const { paths } = JSON.parse(readFileSync(file, 'utf8')) as { paths: Record<string, unknown> }
    return Object.keys(paths).filter((path) => path.includes('{'))
  })
  assert.deepEqual(takesId.toSorted(), [
    '/v1/blocks/{number}/contention',
    '/v1/blocks/{number}/lifecycle',
    '/v1/blocks/{number}/transactions',
    '/v1/connections/{id}/close',
    '/v1/contracts/{address}',
    '/v1/transactions/{signature}',
  ])
})

/** Generates more rows than can be counted within the time limit. */
function heavyQuery(): string {
  const tables = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  const sum = tables.map((table) => `${table}.number`).join(' + ')
  return `SELECT count() FROM ${tables.map((table) => `numbers(50) AS ${table}`).join()} WHERE ${sum} = 1000`
}

async function refused(url: string, headers: Record<string, string>): Promise<string> {
  const { status, body } = await refusedHandshake(url, headers)
  return `${status} ${body.replace(/"request_id":"[^"]*"/, '')}`
}

/** Everything that moves a cursor, ends a line or changes a colour, but for the end of a line itself. */
const CONTROL = /(?!\n)[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

test('T20: hostile method names, paths and messages of a node are one line each in the log, without control characters', async () => {
  sluice.node.respond = (method) => ({ error: JSON.stringify({ code: -32000, message: `no ${method}` }) })
  const client = await openWsTestClient(sluice.gateway.ws, { 'x-token': customer.token, 'user-agent': 'x\u009b31m' })
  for (const method of HOSTILE) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: method, method, params: [method] })
    assert.equal((JSON.parse(await post(body)) as { id: string }).id, method, 'an id is returned unchanged')
    await client.call(method, [method]).catch(() => {})
    await grpcCall(`/geyser.Geyser/${encodeURIComponent(method)}`)
    await fetch(`${sluice.servers.rpc}/${encodeURIComponent(method)}`, { headers: { 'user-agent': encodeURI(method) } })
    await fetch(`${sluice.servers.indexer}/`, { method: 'POST', headers: customer.indexer, body: `SELECT "${method}"` })
    await fetch(sluice.servers.sender, { method: 'POST', body })
    await fetch(sluice.servers.execution, { method: 'POST', body })
  }
  client.socket.terminate()
  sluice.node.respond = () => undefined
  await until('the message of the node is logged', () => sluice.gateway.running.stdout().includes('[31mred'))
  const lines = sluice.gateway.running.stdout().split('\n').slice(0, -1)
  for (const line of lines) {
    assert.doesNotMatch(line, CONTROL)
    const { level, msg } = JSON.parse(line) as Record<string, string>
    assert.notEqual(`${level} ${msg}`, 'error forged')
  }
  for (const words of [
    ['logs', 'tail', '--lines', '1000'],
    ['logs', 'tail', '--json'],
    ['top', '--once'],
    ['status'],
  ]) {
    const { code, stdout, stderr } = await sluice.gateway.sluice(...words)
    assert.equal(code, 0, stderr)
    assert(stdout.length > 0)
    assert.doesNotMatch(stdout + stderr, CONTROL, words.join(' '))
    assert.doesNotMatch(stdout, /^\{"level":"error","msg":"forged"\}$/m)
  }
})

test(`T21: ${METHODS} random methods over RPC, WebSocket and gRPC add no metric series, and there are at most ${SERIES_MAX}`, async (t) => {
  const random = createRandom(seedOf(t))
  const name = () => `zz${Array.from({ length: 10 }, () => String.fromCharCode(97 + random(26))).join('')}`
  const call = (method: string) => ({ jsonrpc: '2.0', id: 1, method, params: [] })
  const metrics = async () => (await fetch(`${sluice.servers.operator}/metrics`)).text()
  const seriesIn = (text: string) =>
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.slice(0, line.lastIndexOf(' ')))
  async function ask({ batches, sockets, grpc }: { batches: number; sockets: number; grpc: number }): Promise<number> {
    for (let at = 0; at < batches; at++) await post(JSON.stringify(Array.from({ length: 100 }, () => call(name()))))
    for (let at = 0; at < sockets; at++) {
      const client = await openWsTestClient(sluice.gateway.ws, { 'x-token': customer.token })
      await Promise.all(Array.from({ length: 10 }, () => client.call(name())))
      client.socket.terminate()
    }
    for (let at = 0; at < grpc; at++) await grpcCall(`/${at % 2 === 0 ? 'geyser.Geyser' : name()}/${name()}`)
    return batches * 100 + sockets * 10 + grpc
  }
  await ask({ batches: 1, sockets: 1, grpc: 2 })
  const before = seriesIn(await metrics())
  assert.equal(await ask({ batches: 97, sockets: 20, grpc: 100 }), METHODS)
  const text = await metrics()
  const now = seriesIn(text)
  // The WebSocket to a node that sends no slots is replaced now and then, independently of the requests.
  const asked = (series: readonly string[]) =>
    series.filter((name) => !name.startsWith('sluice_upstreams_ws_losses_total')).toSorted()
  assert.deepEqual(asked(now), asked(before))
  t.diagnostic(`${now.length} series (figure: ${SERIES_MAX})`)
  assert.ok(now.length > 100 && now.length <= SERIES_MAX, `${now.length} series`)
  assert.doesNotMatch(text, /zz[a-z]{10}/)
  for (const server of ['rpc', 'ws', 'grpc'])
    assert.match(text, new RegExp(`^sluice_bundle_requests_total\\{interface="${server}",method="other"\\} \\d`, 'm'))
})

test(`T24: ${ODD_REQUESTS} malformed requests to every HTTP server: no response reveals a path, an address, a version, a statement or a stack`, async (t) => {
  const random = createRandom(seedOf(t))
  const { ports } = sluice.node
  const forbidden: Readonly<Record<string, RegExp>> = {
    'a path':
      /(?:^|[\s"'(=])\/(?:home|root|usr|tmp|var|etc|opt|srv|proc|work|app)\/|file:\/\/|node_modules|\w\.[cm]?[jt]s:\d/,
    'a stack': /\bat (?:async )?[\w.<>]+ \(|node:internal|\bat node:/,
    'an address': new RegExp(`127\\.0\\.0\\.1:|localhost:|:(?:${ports.rpc}|${ports.ws}|${ports.grpc})\\b|ECONN|EPIPE`),
    'a version': new RegExp(
      `${process.versions.node.replaceAll('.', '\\.')}|node\\.js|undici|\\bws/\\d|ZodError|llhttp|HPE_`,
      'i',
    ),
    'a statement of ours':
      /sqlite|duckdb|(?:Parser|Binder|Catalog) Error|\b(?:FROM|INTO) (?:base|memory|subscriptions|tokens|customers)\b/i,
  }
  const nodePorts = new RegExp(`:(?:${ports.rpc}|${ports.ws}|${ports.grpc})\\b`)
  const faults = [
    'reset',
    { status: 500, body: 'panic in /srv/node/main.rs at 10.1.2.3:8899' },
    { status: 502, body: '' },
  ] as const
  const statuses = new Map<string, number>()
  const found: string[] = []
  let left = ODD_REQUESTS
  async function goOn(): Promise<void> {
    while (left-- > 0) {
      sluice.node.fault = faults[Math.floor(left / 100) % (faults.length + 1)]
      const { server, bytes } = oddRequest(random, customer)
      // A ticket contains the WebSocket address, and an error of these loopback servers that of its page: it is where customers connect.
      const text = (await sendOdd(sluice.servers[server], bytes, random))
        .replaceAll(sluice.gateway.ws, '')
        .replaceAll(/"docs_url":"http:\/\/127\.0\.0\.1:\d+\/docs\/errors\/[a-z-]+"/g, '')
        // The same in the account of a customer; nodes are not among them.
        .replaceAll(/"endpoints":(\{[^}]*\})/g, (_all, own: string) => (nodePorts.test(own) ? own : ''))
      const status = text.replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, '').slice(9, 12)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      // The public page; tests of the page check what a browser gets.
      if (server === 'execution' && /\r\ncontent-type: text\/html/i.test(text)) continue
      for (const [what, pattern] of Object.entries(forbidden)) {
        const hit = pattern.exec(text)
        if (hit !== null)
          found.push(
            `${what} (${hit[0]}) at ${server}: ${bytes.toString('latin1').slice(0, 300)} => ${text.slice(0, 600)}`,
          )
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, goOn))
  sluice.node.fault = undefined
  t.diagnostic([...statuses].map(([status, count]) => `${status || 'closed'}: ${count}`).join(', '))
  assert.deepEqual(found.slice(0, 3), [], `${found.length} responses reveal internals`)
  for (const status of ['200', '400', '401', '404', '405', '503']) assert.ok((statuses.get(status) ?? 0) > 0, status)
  assert.equal(sluice.gateway.running.child.exitCode, null)
})

describe('T23: files and sockets', () => {
  test('T23: the control socket, the store and the keys are accessible to their owner only', () => {
    const state = join(dirname(sluice.gateway.configFile), '.sluice')
    const modeOf = (name: string) => (statSync(join(state, name)).mode & 0o777).toString(8)
    assert.equal(modeOf('.'), '700')
    for (const name of ['control.sock', 'access.db', 'audit.log']) assert.equal(modeOf(name), '600', name)
  })

  test('T23: a secret in a file that others may read prevents the start with 78, the path and the chmod', async () => {
    await using home = await temporaryFolder()
    const secret = home.file('metrics-bearer')
    writeFileSync(secret, 'canary-bearer-4711', { mode: 0o644 })
    writeFileSync(home.file('sluice.toml'), '[metrics]\nbearer = "file:metrics-bearer"\n')
    await using running = serve({ cwd: home.path, args: ['--no-demo'], workers: 2 })
    assert.equal(await running.line(/"msg":"started"/).catch(() => running.exit()), 78)
    const reported = running.stdout() + running.stderr()
    assert(reported.includes(secret) && reported.includes(`chmod 600 ${secret}`), reported)
    assert.doesNotMatch(reported, /canary-bearer/)
  })
})
