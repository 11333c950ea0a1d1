import { gzipSync } from 'node:zlib'
import { RPC_METHODS } from '../../src/contract/rpc-methods.ts'
import { post, send, type WorkCase, type WorkTarget, worstJson } from './work-case.ts'

/** Below the body limit of 64 KiB, with space for the request around it. */
const PARAMS_BYTES = 63_000
const ITEMS_MAX = 100

const call = (method: string, params: string, id: number | string = 1) =>
  `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`
const batch = (items: readonly string[]) => `[${items.join(',')}]`
const times = (count: number, item: (at: number) => string) => Array.from({ length: count }, (_, at) => item(at))

/** JSON-RPC over HTTP, and the account endpoints beside it. */
export function rpcCases(): WorkCase[] {
  const worst = worstJson(PARAMS_BYTES)
  const withToken = (name: string, body: string | Buffer, headers = {}): WorkCase => ({
    name: `rpc ${name}`,
    run: ({ http, token }) => post(http.rpc, body, { 'x-token': token, ...headers }),
  })
  const get = (name: string, path: (target: WorkTarget) => string, headers = {}): WorkCase => ({
    name: `rpc ${name}`,
    run: (target) => send(`${target.http.rpc}${path(target)}`, { headers: { 'x-token': target.token, ...headers } }),
  })
  return [
    ...Object.keys(RPC_METHODS).map((method) =>
      withToken(`${method} with many params`, call(method, worst['many strings'] ?? '')),
    ),
    ...Object.keys(RPC_METHODS).map((method) =>
      withToken(
        `a batch of ${method}`,
        batch(times(ITEMS_MAX, (at) => call(method, '["So11111111111111111111111111111111111111112"]', at))),
      ),
    ),
    ...Object.entries(worst).flatMap(([name, json]) => [
      withToken(`params of ${name}`, call('getAccountInfo', json)),
      withToken(`an unknown method with ${name}`, call('noSuchMethod', json)),
      withToken(`a body of ${name}`, json),
      {
        name: `rpc without a token, a body of ${name}`,
        run: ({ http }: WorkTarget) => post(http.rpc, call('getSlot', json)),
      },
      {
        name: `rpc dry run of a stream with ${name}`,
        run: ({ http, token }: WorkTarget) => post(`${http.rpc}/v1/geyser/check`, json, { 'x-token': token }),
      },
    ]),
    withToken('a batch of invalid items', batch(times(ITEMS_MAX, () => '0'))),
    withToken('a batch of too many items', batch(times(20_000, () => '0'))),
    withToken(
      'a batch of long ids',
      batch(times(ITEMS_MAX, (at) => call('getSlot', '[]', `"${String(at).repeat(150)}"`))),
    ),
    withToken('a compressed body', gzipSync(Buffer.alloc(60_000_000, ' ')), { 'content-encoding': 'gzip' }),
    {
      name: 'rpc dry run with many accounts',
      run: ({ http, token }) =>
        post(
          `${http.rpc}/v1/geyser/check`,
          JSON.stringify({
            accounts: { a: { account: times(1_400, () => 'So11111111111111111111111111111111111111112') } },
          }),
          { 'x-token': token },
        ),
    },
    get('a long query', () => `/?${'api-key=a&'.repeat(1_400)}`),
    get(
      'many header fields',
      () => '/v1/whoami',
      Object.fromEntries(times(40, (at) => `x-h-${at}`).map((name) => [name, 'a'.repeat(300)])),
    ),
    get('whoami', () => '/v1/whoami'),
    get('connections', () => '/v1/connections'),
    get('account', () => '/v1/account'),
    get('usage of 92 days', () => '/v1/usage?by=total&since=92d'),
    get('usage by hour as CSV', () => '/v1/usage?by=hour&since=31d&format=csv'),
    get('usage with a long query', () => `/v1/usage?${'since=1d&'.repeat(1_400)}`),
    get('the account page', () => '/account'),
    { name: 'rpc ticket', run: ({ http, token }) => post(`${http.rpc}/v1/ws-ticket`, '', { 'x-token': token }) },
  ]
}
