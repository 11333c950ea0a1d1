import { connect } from 'node:net'
import { mutate } from '../support/process/property.ts'
import type { RunningSluice, SluiceCustomer } from './whole-sluice.ts'

/** One request as bytes, for one server. */
export type OddRequest = { readonly server: Server; readonly bytes: Buffer }
type Server = keyof RunningSluice['servers']
type Random = (below: number) => number

const PATHS: Readonly<Record<Server, readonly string[]>> = {
  rpc: [
    ...['/', '/', '/', '/v1/whoami', '/v1/connections', '/v1/connections/con_1/close', '/v1/ws-ticket'],
    ...['/v1/account', '/v1/usage', '/v1/usage?by=%00', '/v1/shreds', '/account', '/account/x'],
    ...['/v1/geyser/check', '/v2/whoami', '/nothing', '//', '/%00', '/..%2f..%2fsecret', '/?api-key=%zz', '/?=&&='],
  ],
  sender: [
    ...[
      '/',
      '/',
      '/fast',
      '/api/v1/transactions',
      '/ping',
      '/v1/transactions/abc',
      `/v1/transactions/${'1'.repeat(88)}`,
    ],
    ...['/v1/transactions/%ff?wait=-1', '/api/v1/transactions/%2e%2e', '/fast/fast'],
  ],
  execution: [
    ...[
      '/',
      '/v1/tps',
      '/v1/contention',
      '/v1/blocks?limit=-1',
      '/v1/blocks/zz/lifecycle',
      '/v1/blocks/1e99/contention',
    ],
    ...['/v1/ws', '/ws?subscribe=%7B', '/health', '/metrics/x', '/assets/%2e%2e/%2e%2e/package.json', '/v1/status?x=%'],
  ],
  indexer: [
    ...['/', '/', '/', '/?query=SELECT%20nosuch', '/?database=elsewhere&query=SELECT%201', '/?max_threads=x', '/play'],
    ...['/?default_format=Nothing', '/?query_id=%00', '/replicas_status', '/?param_p=%27', '/?session_id=1', '/%'],
  ],
  operator: ['/metrics/x', '/healthz', '/readyz', '/', '/debug/pprof', '/metricsx?format=%', '/healthz/../x'],
}

const BODIES = [
  ...['', '{', '[]', '[[]]', 'null', '"x"', '[1,2,3]', `${'['.repeat(40)}${']'.repeat(40)}`, '{"jsonrpc":"2.0"}'],
  ...['getBalance', 'sendTransaction', 'getTipAccounts', 'eth_getBlockByNumber', 'eth_call', '__proto__', ''].flatMap(
    (method) => [
      `{"jsonrpc":"2.0","id":1,"method":"${method}","params":["0xzz",{"encoding":"none"}]}`,
      `{"jsonrpc":"2.0","id":{},"method":"${method}","params":{"a":1e999}}`,
      `[{"jsonrpc":"2.0","id":9007199254740993,"method":"${method}"},7]`,
    ],
  ),
  '{"accounts":{"a":{"account":["not a key"]}},"commitment":9}',
  ...[
    'SELECT',
    'SELECT 1/0',
    "SELECT CAST('x' AS INTEGER)",
    "SELECT 'open",
    'SELECT * FROM nosuch',
    'SELECT upper(1,2,3)',
  ],
  ...['SELECT slott FROM blocks', 'DROP TABLE blocks', 'SELECT 1; SELECT 2', 'SELECT {p:UInt64}', 'EXPLAIN SELECT 1'],
  ...[
    'SELECT * FROM read_text(1)',
    'SELECT unnest(1)',
    `SELECT ${'('.repeat(300)}1`,
    'INSERT INTO blocks VALUES',
    '\0',
  ],
  'AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
].map((text) => Buffer.from(text))

const METHODS = ['POST', 'POST', 'POST', 'GET', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE', 'BREW', 'get']

const HEADERS = [
  ...['content-type: application/json', 'content-type: text/plain; charset=utf-99', 'content-type: ,;', 'accept: */*'],
  ...[
    'accept-encoding: gzip',
    'content-encoding: gzip',
    'content-encoding: br',
    'expect: 100-continue',
    'expect: more',
  ],
  ...[
    'range: bytes=0-1',
    'if-none-match: *',
    'origin: https://elsewhere.example',
    'upgrade: h2c',
    'x-request-id: \x7f',
  ],
  ...[
    'traceparent: 00-x',
    'x-forwarded-for: 999.1.1.1',
    'te: trailers',
    'cookie: a=b',
    'transfer-encoding: gzip',
    'x:',
  ],
  ...[
    'sec-websocket-key: x\r\nupgrade: websocket',
    'authorization: Basic %%%',
    'x-clickhouse-user: nobody',
    `x-long: ${'y'.repeat(9000)}`,
  ],
]

/** Requests no client would send, some nearly right, some hardly HTTP; the same for the same random numbers. */
export function oddRequest(random: Random, customer: SluiceCustomer): OddRequest {
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T
  const server = pick(Object.keys(PATHS) as Server[])
  const body = random(3) === 0 ? Buffer.from(mutate(pick(BODIES), random)) : pick(BODIES)
  const credentials = random(8) === 0 ? {} : server === 'indexer' ? customer.indexer : { 'x-token': customer.token }
  // Some reach the service behind the server.
  const [method, path] = random(3) === 0 ? ['POST', '/'] : [pick(METHODS), pick(PATHS[server])]
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'host: gateway',
    'connection: close',
    ...Object.entries(credentials).map(([name, value]) => `${name}: ${value}`),
    ...(random(2) === 0 ? ['content-type: application/json'] : Array.from({ length: random(4) }, () => pick(HEADERS))),
    `content-length: ${random(20) === 0 ? body.length + 1 - random(3) : body.length}`,
  ]
  const bytes = Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body])
  return { server, bytes: random(10) === 0 ? Buffer.from(mutate(bytes, random)) : bytes }
}

const RESPONSE_MS_MAX = 1500

/** Sends it from a separate address, so that no limit by address applies, and returns everything received. */
export function sendOdd(url: string, bytes: Buffer, random: Random): Promise<string> {
  const { hostname, port } = new URL(url)
  const localAddress = `127.${1 + random(250)}.${random(250)}.${1 + random(250)}`
  return new Promise((resolve) => {
    let text = ''
    const socket = connect({ host: hostname, port: Number(port), localAddress }, () => socket.write(bytes))
    const limit = setTimeout(() => socket.destroy(), RESPONSE_MS_MAX)
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(limit)
      resolve(text)
    })
  })
}
