import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rpcCall } from '../support/execution/eth-blocks.ts'
import { startTestExecution, type TestExecution } from '../support/execution/start.ts'

/** Which web pages may call 8443 (DECISIONS: reads are open to any origin, POST / to configured ones). */

const GRANTED = 'https://app.example.com'
const OTHER = 'https://elsewhere.example'
const BODY = JSON.stringify(rpcCall('eth_syncing'))

function post(service: TestExecution, headers: Record<string, string>) {
  return fetch(service.http, { method: 'POST', headers, body: BODY })
}

function preflight(service: TestExecution, path: string, origin: string) {
  const headers = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }
  return fetch(`${service.http}${path}`, { method: 'OPTIONS', headers })
}

test('POST / is granted to configured origins only, by default to none', async () => {
  for (const corsOrigins of [[], [GRANTED]]) {
    await using service = await startTestExecution({ settings: { corsOrigins } })
    for (const origin of [GRANTED, OTHER]) {
      const granted = corsOrigins.includes(origin) ? origin : null
      const asked = await preflight(service, '/', origin)
      assert.equal(asked.headers.get('access-control-allow-origin'), granted)
      assert.equal(asked.headers.get('access-control-allow-methods'), granted === null ? null : 'POST, OPTIONS')
      assert.equal(asked.headers.get('vary'), 'origin')
      const posted = await post(service, { origin, 'content-type': 'application/json' })
      assert.equal(posted.headers.get('access-control-allow-origin'), granted)
      assert.equal(posted.headers.get('vary'), 'origin, accept-encoding')
      assert.equal(posted.headers.get('access-control-allow-credentials'), null)
    }
    const read = await fetch(`${service.http}/v1/tps`, { headers: { origin: OTHER } })
    assert.equal(read.headers.get('access-control-allow-origin'), '*')
  }
})

test('a content type that a browser sends without a preflight is refused with 415 before the body is read', async () => {
  await using service = await startTestExecution({ settings: { corsOrigins: [GRANTED] } })
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
  ]) {
    const refused = await post(service, { origin: OTHER, 'content-type': type })
    assert.equal(refused.status, 415, type)
    assert.match(await refused.text(), /"code":-32415,"message":"Content-Type: application\/json is required"/)
    assert.equal((await post(service, { 'content-type': type })).status, 415, type)
  }
  for (const encoding of ['gzip', 'br']) {
    const refused = await post(service, { 'content-type': 'application/json', 'content-encoding': encoding })
    assert.deepEqual([refused.status, refused.headers.get('accept-encoding')], [415, 'identity'])
    assert.match(await refused.text(), /"code":-32415,"message":"Content-Encoding: send the body uncompressed"/)
  }
  const json = await post(service, { origin: GRANTED, 'content-type': 'application/json; charset=utf-8' })
  assert.equal(json.status, 200)
  assert.deepEqual(await json.json(), { jsonrpc: '2.0', result: false, id: 1 })
})
