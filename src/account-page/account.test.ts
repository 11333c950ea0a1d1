import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { after, before, beforeEach, describe, test } from 'node:test'
import { startHttpServer, type TestHttpServer } from '../../test/support/machine/http-server.ts'
import type { PageError } from '../ui/page/page-error.ts'
import { createAccountClient } from './client.ts'
import { limitUse } from './limit-use.ts'
import { MASKED_TOKEN, pasteLines } from './paste-lines.ts'

const TOKEN = 'slc_secret'

describe('the client of the account page', () => {
  const seen: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = []
  const refused: PageError[] = []
  let reply = { status: 200, body: '{}' }
  let server: TestHttpServer
  before(async () => {
    server = await startHttpServer((request, response) => {
      seen.push({ url: request.url ?? '', headers: request.headers })
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body)
    })
  })
  after(() => server[Symbol.asyncDispose]())
  beforeEach(() => {
    seen.length = 0
    refused.length = 0
    reply = { status: 200, body: '{"a":1}' }
  })
  const open = (address = new URL(server.url)) =>
    createAccountClient({ base: address, fetch, token: () => TOKEN, onRefused: (error) => void refused.push(error) })

  test('sends the token in a header, never in the address', async () => {
    assert.deepEqual(await open().call('v1/usage', { query: { since: '7d' } }), { ok: true, value: { a: 1 } })
    assert.deepEqual([seen[0]?.url, seen[0]?.headers['x-token']], ['/v1/usage?since=7d', TOKEN])
    const file = await open().file('v1/usage')
    assert.ok(file.ok && (await file.value.text()) === reply.body)
    assert.ok(seen.every(({ url, headers }) => !`${url} ${headers.referer}`.includes(TOKEN)))
  })

  test('an error has its message and what to do; a refused token ends the session', async () => {
    reply = { status: 400, body: '{"error":"invalid-params","message":"no","fix":"Do this.","request_id":"r1"}' }
    const wrong = await open().call('v1/usage')
    assert.deepEqual(wrong, { ok: false, status: 400, error: { message: 'no', fix: 'Do this.', requestId: 'r1' } })
    assert.deepEqual(refused, [])
    const data = { reason: 'expired', fix: 'Ask.', request_id: 'r2' }
    reply = {
      status: 401,
      body: JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32401, message: 'm', data } }),
    }
    await open().call('v1/account')
    assert.deepEqual(refused, [{ message: 'm', fix: 'Ask.', requestId: 'r2' }])
    reply = { status: 502, body: '<html>' }
    const proxy = await open().call('v1/account')
    assert.ok(!proxy.ok && /status 502/.test(proxy.error.message))
    const away = await open(new URL('http://127.0.0.1:1/')).call('v1/account')
    assert.ok(!away.ok && away.status === 0 && away.error.fix !== undefined)
  })
})

test('lines to paste are those of the products, without the token until it is chosen', () => {
  const endpoints = { rpc: 'https://rpc.x', ws: 'wss://ws.x', grpc: 'https://grpc.x', indexer: 'https://sql.x' }
  const linesOf = (products: string[], token = MASKED_TOKEN, given: Record<string, string> = endpoints) =>
    pasteLines({ endpoints: given, products, origin: 'http://here', token })
  const ids = (products: string[], given?: Record<string, string>) =>
    linesOf(products, MASKED_TOKEN, given ?? endpoints).map(({ id }) => id)
  assert.deepEqual(ids(['bundle']), ['curl', 'web3', 'wscat', 'yellowstone', 'usage'])
  assert.deepEqual(ids(['indexer']), ['sql', 'usage'])
  assert.deepEqual(ids(['bundle'], {}), ['curl', 'web3', 'usage'])
  assert.match(linesOf(['bundle'], MASKED_TOKEN, {})[0]?.text ?? '', /http:\/\/here$/)
  assert.match(
    linesOf(['bundle'])[1]?.text ?? '',
    /fetch\('https:\/\/rpc\.x\/v1\/ws-ticket'[^]*wss:\/\/ws\.x\/\?ticket=/,
  )
  assert.doesNotMatch(linesOf(['bundle'], MASKED_TOKEN, {})[1]?.text ?? '', /ticket/)
  assert.ok(linesOf(['bundle', 'indexer']).every(({ text }) => !text.includes('slc_')))
  assert.ok(linesOf(['bundle', 'indexer'], TOKEN).every(({ text }) => text.includes(TOKEN)))
})

test('limits are listed with what is in use of them', () => {
  const limits = {
    unitsPerSecond: 10,
    unitsPerMonth: null,
    wsConnections: 4,
    methods: [],
    grpcKinds: null,
    grpcResume: true,
  }
  const month = { limit: null, used: 7, resets_at: '' }
  const found = limitUse({ limits, month, open: { wsConnections: 1 } })
  assert.deepEqual(
    found.map(({ name, max, used }) => [name, max, used]),
    [
      ['unitsPerSecond', 10, undefined],
      ['unitsPerMonth', null, 7],
      ['wsConnections', 4, 1],
    ],
  )
})
