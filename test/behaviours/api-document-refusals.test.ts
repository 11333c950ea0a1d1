import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { z } from 'zod'
import { bundleOpenApi } from '../../scripts/docs/openapi/bundle.ts'
import type { OpenApi } from '../../scripts/docs/openapi/document.ts'
import { executionOpenApi } from '../../scripts/docs/openapi/execution.ts'
import { senderOpenApi } from '../../scripts/docs/openapi/sender.ts'
import * as customer from '../../src/contract/schemas/customer.ts'
import * as execution from '../../src/contract/schemas/execution.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { refusePlain } from '../../src/sender/accept/refusal.ts'
import { startSenderServer } from '../../src/sender/http.ts'
import { TRANSACTION_LIMITS } from '../../src/solana/transaction/types.ts'
import { startTestExecution } from '../support/execution/start.ts'
import { AMPLE_HELD_BYTES } from '../support/gateway/held-bytes.ts'
import { startGateway } from '../support/gateway/start.ts'

/** What the OpenAPI documents say about responses without a result: the status is there, and the body has the type and the form. */

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  PageError: customer.pageError,
  RpcResponse: customer.rpcResponse,
  RouteError: execution.routeError,
  LimitError: execution.limitError,
}
const PREFIX = '#/components/schemas/'

type Documented = {
  readonly headers?: Readonly<Record<string, object>>
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}
type Schema = {
  readonly $ref?: string
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly type?: string
}

function isOf(schema: Schema, body: unknown): boolean {
  const forms = schema.oneOf ?? schema.anyOf
  if (forms !== undefined) return forms.some((each) => isOf(each, body))
  const known = schema.$ref === undefined ? undefined : SCHEMAS[schema.$ref.slice(PREFIX.length)]
  return known === undefined ? schema.type === typeof body : known.safeParse(body).success
}

/** Checks the response against the operation, `GET /v1/tps`, and returns its status. */
async function checkResponse(document: OpenApi, operation: string, response: Response): Promise<number> {
  const [method = '', path = ''] = operation.split(' ')
  const { status } = response
  const responses = document.paths[path]?.[method.toLowerCase()]?.responses ?? assert.fail(operation)
  const documented = responses[status] as Documented | undefined
  const text = await response.text()
  assert.ok(documented !== undefined, `${operation}: ${status} is not documented: ${text}`)
  for (const name of Object.keys(documented.headers ?? {}))
    assert.ok(response.headers.has(name), `${operation}: ${name}`)
  if (documented.content === undefined) {
    assert.equal(text, '', operation)
    return status
  }
  const type = response.headers.get('content-type')?.split(';')[0] ?? 'none'
  const schema = documented.content[type]?.schema
  assert.ok(
    schema !== undefined,
    `${operation}: ${status} is ${type}, documented: ${Object.keys(documented.content).join()}`,
  )
  assert.ok(isOf(schema, type === 'application/json' ? JSON.parse(text) : text), `${operation}: ${status} ${text}`)
  return status
}

const JSON_TYPE = { 'content-type': 'application/json' }

describe('the OpenAPI documents describe', () => {
  test('the refusals of the account endpoints', async () => {
    const document = bundleOpenApi()
    await using gateway = await startGateway([{ name: 'n', rpc: 'http://127.0.0.1:1' }])
    const { token } = await gateway.subscribe({ overrides: { unitsPerSecond: null } })
    const check = async (operation: string, path: string, init: RequestInit = {}) => {
      const response = await fetch(`${gateway.url}${path}`, { method: operation.split(' ')[0] ?? '', ...init })
      return checkResponse(document, operation, response)
    }
    for (const path of ['/v1/whoami', '/v1/account', '/v1/usage', '/v1/connections'])
      assert.equal(await check(`GET ${path}`, path), 401)
    assert.equal(await check('POST /v1/ws-ticket', '/v1/ws-ticket'), 401)
    const headers = { ...JSON_TYPE, 'x-token': token }
    const large = { headers, body: ' '.repeat(2 * 1024 * 1024) }
    assert.equal(await check('POST /v1/geyser/check', '/v1/geyser/check', large), 413)
    // Without a limit the headers of the budget are not numbers.
    const unlimited = await fetch(`${gateway.url}/v1/whoami`, { headers })
    assert.equal(unlimited.headers.get('x-ratelimit-limit'), 'unlimited')
    const call = document.paths['/']?.['post']?.responses['200'] as
      | { headers: Record<string, { schema: object }> }
      | undefined
    assert(call !== undefined)
    const { headers: named } = call
    assert.match(JSON.stringify(named['x-ratelimit-limit']), /"unlimited"/)
    assert.match(JSON.stringify(named['x-ratelimit-remaining']), /"unlimited"/)
  })

  test('the refusals of the execution service', async () => {
    const document = executionOpenApi()
    await using service = await startTestExecution({ settings: { work: { unitsPerSecond: 1, burstUnits: 30 } } })
    const check = async (operation: string, path: string, init: RequestInit = {}) => {
      const response = await fetch(`${service.http}${path}`, { method: operation.split(' ')[0] ?? '', ...init })
      return checkResponse(document, operation, response)
    }
    const post = (body: string) => check('POST /', '/', { headers: JSON_TYPE, body })
    assert.equal(await check('GET /v1/search', '/v1/search'), 400)
    const [q] = (document.paths['/v1/search']?.['get']?.parameters ?? []) as { required: boolean }[]
    assert.equal(q?.required, true, 'a query without q is refused')
    assert.equal(await post('{"jsonrpc":"2.0","method":"eth_syncing"}'), 204)
    assert.equal(await check('POST /v1/ws-ticket', '/v1/ws-ticket'), 404)
    for (let spent = 0; spent < 40; spent++) if ((await fetch(`${service.http}/v1/tps`)).status === 429) break
    assert.equal(await check('GET /v1/tps', '/v1/tps'), 429)
    assert.equal(await check('GET /metrics', '/metrics'), 429)
    assert.equal(await post('{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}'), 429)
  })

  test('the refusals of the sender', async () => {
    const document = senderOpenApi()
    let nowMs = 0
    await using sender = await startSenderServer(
      {
        ...TRANSACTION_LIMITS,
        listen: { host: '127.0.0.1', port: 0 },
        trustedProxies: [],
        readsPerAddressPerSecond: 2,
        waitersMax: 1,
        waitersPerAddressMax: 1,
        receiptsMax: 1,
      },
      {
        log: silentLogger,
        clock: { ...systemClock, monotonicMs: () => nowMs },
        random: secureRandom,
        accept: async () => ({ ok: false, refusal: refusePlain('no-path') }),
        receipts: { get: () => undefined },
        terms: { minTipLamports: 1_000_000, tipAccounts: [] },
        version: '0',
        isHealthy: () => true,
        refusals: { report() {}, record() {} },
        onDuplicate() {},
        heldBytes: AMPLE_HELD_BYTES,
        onRefused() {},
        onNotAfter() {},
      } as unknown as Parameters<typeof startSenderServer>[1],
    )
    const url = `http://127.0.0.1:${sender.address.port}`
    const check = async (operation: string, path: string, init: RequestInit = {}) => {
      const response = await fetch(`${url}${path}`, { method: operation.split(' ')[0] ?? '', ...init })
      return checkResponse(document, operation, response)
    }
    const raw = (type: string, query = '', body = 'AA==') =>
      check('POST /api/v1/transactions', `/api/v1/transactions${query}`, { headers: { 'content-type': type }, body })
    const cases: [number, () => Promise<number>][] = [
      [400, () => raw('text/plain', '?response=all')],
      [413, () => raw('text/plain', '', 'A'.repeat(100_000))],
      [415, () => raw('image/png')],
      [503, () => raw('text/plain')],
      [404, () => check('GET /v1/transactions/{signature}', '/v1/transactions/x')],
    ]
    for (const [status, request] of cases) {
      nowMs += 10_000
      assert.equal(await request(), status)
    }
    const statuses = new Set<number>()
    for (let more = 0; more < 5; more++) statuses.add(await check('GET /ping', '/ping'))
    assert.deepEqual([...statuses], [200, 429])
    assert.equal(await check('GET /tips', '/tips'), 429)
    assert.equal(await check('GET /v1/transactions/{signature}', '/v1/transactions/x'), 429)
    assert.equal(await raw('image/png'), 429)
    const call = { headers: JSON_TYPE, body: '{"jsonrpc":"2.0","id":1,"method":"getHealth"}' }
    assert.equal(await check('POST /', '/', call), 429)
  })
})
