import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startServedGateway } from '../support/gateway/served.ts'

const SHARE_BYTES = 256 * 1024
const BODY_BYTES = 64 * 1024

test('limits the bytes of held requests and responses, and refuses by the name of the limit without forwarding', async () => {
  await using node = await startFakeNode()
  const large = `"${'x'.repeat(600_000)}"`
  node.respond = (method) => ({ result: method === 'getProgramAccounts' ? large : '"small"' })
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }], {
    env: { SLUICE_MEMORY__HELD_BYTES_PER_SUBSCRIPTION_MAX: String(SHARE_BYTES) },
  })
  const { url, token, metrics } = gateway
  const { port, hostname } = new URL(url)
  const metric = async (name: string) => {
    const text = await (await fetch(`${metrics}/metrics`)).text()
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.split(' ')[1],
    )
  }
  const post = (body: string, headers: Record<string, string> = {}) =>
    fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', 'x-token': token, ...headers } })
  const call = (method: string, id: number) => ({ jsonrpc: '2.0', id, method })

  // Four bodies that never end take all of the subscription's share.
  const slow = Array.from({ length: SHARE_BYTES / BODY_BYTES }, () => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.write(
      `POST / HTTP/1.1\r\nhost: a\r\nx-token: ${token}\r\ncontent-type: application/json\r\ncontent-length: ${BODY_BYTES}\r\n\r\n{`,
    )
    return socket
  })
  await until('they are held', async () => (await metric('sluice_process_held_bytes')) === SHARE_BYTES)
  const refused = await post(JSON.stringify([call('getBalance', 1)]))
  assert.equal(refused.status, 503)
  assert.equal(refused.headers.get('retry-after'), '2')
  const { error, id } = (await refused.json()) as { error: { code: number; data: Record<string, unknown> }; id: null }
  assert.deepEqual(
    [error.code, error.data['limit'], error.data['size'], id],
    [-32503, 'heldBytesPerSubscription', SHARE_BYTES, null],
  )
  // Other services of the process call the node as well, by other methods.
  assert.ok(!node.calls.some(({ method }) => method === 'getBalance'), 'nothing was forwarded')
  assert.equal(await metric('sluice_bundle_refused_total{interface="rpc",limit="heldBytesPerSubscription"}'), 1)
  // A call that holds no bytes is served all the same.
  assert.equal((await post(JSON.stringify(call('getHealth', 1)))).status, 200)

  for (const socket of slow) socket.destroy()
  await until('all bytes are released', async () => (await metric('sluice_process_held_bytes')) === 0)

  // One item larger than the share is refused with the name of the limit; the others are served.
  const mixed = await (await post(JSON.stringify([call('getProgramAccounts', 1), call('getHealth', 2)]))).text()
  assert.match(
    mixed.slice(0, 1000),
    /^\[\{"jsonrpc":"2\.0","error":\{"code":-32503,[^[]*"limit":"heldBytesPerSubscription"[^[]*"id":1\},/,
  )
  assert.match(mixed.slice(-1000), /\{"jsonrpc":"2\.0","result":"small","id":2\}\]$/)
  assert.equal(await metric('sluice_process_held_bytes'), 0)
})

test('delivers a large batch completely, in order, and compressed on request', async () => {
  await using node = await startFakeNode()
  node.respond = (_method, params) => ({ result: `"${String(params).repeat(100_000)}"` })
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
  const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const body = JSON.stringify(
    letters.map((letter, id) => ({ jsonrpc: '2.0', id, method: 'getBlock', params: [letter] })),
  )
  const expected = `[${letters.map((letter, id) => `{"jsonrpc":"2.0","result":"${letter.repeat(100_000)}","id":${id}}`).join(',')}]`
  const headers = { 'content-type': 'application/json', 'x-token': gateway.token }
  const identity = await fetch(gateway.url, {
    method: 'POST',
    body,
    headers: { ...headers, 'accept-encoding': 'identity' },
  })
  assert.equal(await identity.text(), expected)
  assert.match(identity.headers.get('x-ratelimit-cost') ?? '', /^\d+$/)
  const { port, hostname } = new URL(gateway.url)
  // Over a raw socket, since `fetch` hides the encoding; HTTP/1.0 has no chunks.
  const raw = await new Promise<Buffer>((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(port), hostname)
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('close', () => resolve(Buffer.concat(chunks)))
    socket.write(
      `POST / HTTP/1.0\r\nhost: a\r\nx-token: ${gateway.token}\r\ncontent-type: application/json\r\naccept-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
  })
  const bodyAt = raw.indexOf('\r\n\r\n') + 4
  assert.match(raw.toString('latin1', 0, bodyAt), /^HTTP\/1\.1 200 [^]*content-encoding: gzip/i)
  assert.equal(gunzipSync(raw.subarray(bodyAt)).toString(), expected)
})
