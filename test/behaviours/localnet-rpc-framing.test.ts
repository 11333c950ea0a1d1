import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { startTestServer, type TestServer } from '../support/solana/rpc-server.ts'

/** Framing as jsonrpc-core 18 does it under Agave: HTTP 200 for every JSON-RPC error, plain text for the rest. */
describe('localnet JSON-RPC framing', () => {
  let server: TestServer
  before(async () => {
    server = await startTestServer()
  })
  after(() => server[Symbol.asyncDispose]())

  const body = async (text: string) => {
    const response = await server.post(text)
    assert.equal(response.status, 200, text)
    return response.text
  }
  const error = (code: number, message: string, id = 'null') =>
    `{"jsonrpc":"2.0","error":{"code":${code},"message":"${message}"},"id":${id}}\n`
  const PARSE = error(-32700, 'Parse error')
  const health = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"getHealth"}`

  it('echoes ids unchanged and ends with a newline', async () => {
    for (const id of ['1', '18446744073709551615', '"0"', 'null', '"a\\u0062"', '""']) {
      assert.equal(await body(health(id)), `{"jsonrpc":"2.0","result":"ok","id":${id}}\n`)
    }
  })

  it('responds with a parse error to the whole body where one item is invalid', async () => {
    const broken = [
      '',
      '{',
      'nul',
      '1',
      '"x"',
      '[1,2]',
      '[{}, 1]',
      '{"id":{}}',
      '{"id":1.5}',
      '{"id":-1}',
      '{"id":1e3}',
      '{"id":18446744073709551616}',
    ]
    broken.push(
      '{"id":1,"id":2}',
      `[${health('1')},${health('-1')}]`,
      '\ufeff{}',
      `${'['.repeat(128)}${']'.repeat(128)}`,
    )
    for (const text of broken) assert.equal(await body(text), PARSE, text)
    const bytes = await server.post(new Uint8Array([0x7b, 0xff, 0x7d]))
    assert.equal(bytes.text, PARSE)
  })

  it('responds with Invalid Request and the id to an object that is not a request', async () => {
    const invalid = error(-32600, 'Invalid request')
    for (const text of [
      '{}',
      '{"jsonrpc":"2.0"}',
      '{"jsonrpc":"1.0","method":"getHealth"}',
      '{"method":5}',
      '{"id":null}',
    ]) {
      assert.equal(await body(text), invalid, text)
    }
    const withId = error(-32600, 'Invalid request', '7')
    const members = [
      '"jsonrpc":"2.0"',
      '"method":"getHealth","extra":1',
      '"method":"getHealth","method":"getHealth","jsonrpc":"2.0"',
    ]
    members.push('"jsonrpc":"2.0","method":"getHealth","params":5', '"jsonrpc":2.0,"method":"getHealth"')
    for (const member of members) assert.equal(await body(`{"id":7,${member}}`), withId, member)
  })

  it('requires a version in calls, but not in notifications', async () => {
    assert.equal(
      await body('{"id":1,"method":"getHealth"}'),
      error(-32600, 'Unsupported JSON-RPC protocol version', '1'),
    )
    assert.equal(
      await body('{"jsonrpc":null,"id":1,"method":"getHealth"}'),
      error(-32600, 'Unsupported JSON-RPC protocol version', '1'),
    )
    assert.equal(await body('{"method":"getHealth"}'), '')
  })

  it('responds to notifications and empty batches with an empty body', async () => {
    for (const text of ['{"jsonrpc":"2.0","method":"getHealth"}', '[]', '[{"jsonrpc":"2.0","method":"nonsense"}]']) {
      assert.equal(await body(text), '', text)
    }
  })

  it('responds to a batch in order, without entries for notifications', async () => {
    const batch = `[${health('2')},{"jsonrpc":"2.0","method":"getHealth"},{"id":"x"},${health('2')}]`
    const ok = '{"jsonrpc":"2.0","result":"ok","id":2}'
    const invalid = '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":"x"}'
    assert.equal(await body(batch), `[${ok},${invalid},${ok}]\n`)
  })

  it('responds with Method not found to unsupported methods', async () => {
    const names = [
      'getStakeActivation',
      'getFeeCalculatorForBlockhash',
      'getConfirmedSignaturesForAddress2',
      'toString',
      '__proto__',
      '',
    ]
    for (const name of names) {
      assert.equal(
        await body(`{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(name)}}`),
        error(-32601, 'Method not found', '1'),
      )
      assert.equal(await body(`{"jsonrpc":"2.0","method":${JSON.stringify(name)}}`), '')
    }
  })

  it('refuses other methods, types and sizes in plain text', async () => {
    const plain = async (init: RequestInit, path = '/') => {
      const response = await fetch(`${server.url}${path}`, init)
      return [response.status, (await response.text()).trim()]
    }
    assert.deepEqual(await plain({ method: 'GET' }), [
      405,
      'Used HTTP Method is not allowed. POST or OPTIONS is required',
    ])
    assert.deepEqual(await plain({ method: 'PUT', body: '{}' }), [
      405,
      'Used HTTP Method is not allowed. POST or OPTIONS is required',
    ])
    const WRONG_TYPE = [415, 'Supplied content type is not allowed. Content-Type: application/json is required']
    for (const type of ['text/plain', 'application/json; charset=latin1', '']) {
      assert.deepEqual(
        await plain({ method: 'POST', body: health('1'), headers: { 'content-type': type } }),
        WRONG_TYPE,
        type,
      )
    }
    for (const type of ['application/json', 'Application/JSON;charset=UTF-8', 'application/json; charset=utf-8']) {
      const [status] = await plain({ method: 'POST', body: health('1'), headers: { 'content-type': type } })
      assert.equal(status, 200, type)
    }
    assert.deepEqual(await plain({ method: 'GET' }, '/health'), [200, 'ok'])
    const [, total] = await plain({ method: 'GET' }, '/v0/total-supply')
    assert.ok(Number(total) > 5e8)

    const full = `${health('1')}${' '.repeat(50 * 1024 - health('1').length)}`
    assert.equal(await body(full), '{"jsonrpc":"2.0","result":"ok","id":1}\n')
    const over = await server.post(`${full} `)
    assert.deepEqual([over.status, over.text.trim()], [413, 'request body size exceeds allowed maximum'])
  })

  it('stops reading a body without a content length at the limit', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sending = request(
        server.url,
        { method: 'POST', headers: { 'content-type': 'application/json' } },
        (response) => {
          response.resume()
          resolve(response.statusCode)
        },
      )
      sending.on('error', reject)
      sending.write(' '.repeat(30 * 1024))
      sending.write(' '.repeat(30 * 1024))
    })
    assert.equal(status, 413)
  })

  it('allows cross-origin requests from any origin', async () => {
    const headers = {
      origin: 'https://example.org',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,solana-client',
    }
    const preflight = await fetch(server.url, { method: 'OPTIONS', headers })
    assert.equal(preflight.status, 200)
    assert.equal(preflight.headers.get('access-control-allow-origin'), '*')
    assert.equal(preflight.headers.get('access-control-allow-headers'), 'content-type,solana-client')
    assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /POST/)
    const response = await server.post(health('1'), {
      'content-type': 'application/json',
      origin: 'https://example.org',
    })
    assert.equal(response.headers.get('access-control-allow-origin'), '*')
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  })
})
