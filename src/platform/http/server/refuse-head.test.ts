import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { silentLogger } from '../../telemetry/logger.ts'
import { sendJson, sendRaw } from './reply.ts'
import { type HttpServer, type HttpServerDeps, startHttpServer } from './server.ts'
import { raw } from './test-raw.ts'

const start = (deps: Partial<HttpServerDeps> = {}): Promise<HttpServer> =>
  startHttpServer(
    { listen: { host: '127.0.0.1', port: 0 } },
    {
      log: silentLogger,
      onRequest: (request, response) => sendJson(response, 200, { url: request.url }, { 'x-request-id': 'id' }),
      ...deps,
    },
  )

const statusesOf = (responses: string) =>
  [...responses.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
const NEXT = 'GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

test('an unknown expectation is 417 with a body, and ends the connection', async () => {
  await using server = await start()
  for (const value of ['more', '200-ok', '100-continued']) {
    const text = await raw(server, `GET / HTTP/1.1\r\nHost: a\r\nExpect: ${value}\r\n\r\n${NEXT}`)
    assert.deepEqual(statusesOf(text), [417], value)
    assert.match(
      text,
      /\r\nconnection: close\r\n[^]*\{"error":"expectation","message":"Expect supports only 100-continue"\}$/i,
    )
  }
})

test('an unknown expectation is no way around the rules for a head', async () => {
  await using server = await start()
  const expecting = 'Host: a\r\nExpect: more\r\n'
  for (const [status, head] of [
    [400, 'GET / HTTP/1.1\r\nExpect: more\r\n\r\n'],
    [400, `GET / HTTP/1.1\r\nHost: b\r\n${expecting}\r\n`],
    [400, `POST / HTTP/1.1\r\n${expecting}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    [431, `GET / HTTP/1.1\r\n${expecting}x: ${'y'.repeat(16_100)}\r\nz: ${'y'.repeat(300)}\r\n\r\n`],
  ] as const)
    assert.deepEqual(statusesOf(await raw(server, head + NEXT)), [status], head.slice(0, 100))
})

test('an unknown expectation is refused behind the responses to the requests before', async () => {
  await using server = await start()
  const text = await raw(
    server,
    'GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n',
  )
  assert.deepEqual(statusesOf(text), [200, 417])
})

test('HTTP/1.0 has no expectations', async () => {
  await using server = await start()
  assert.deepEqual(statusesOf(await raw(server, 'GET / HTTP/1.0\r\nExpect: more\r\n\r\n')), [200])
})

test('a Host that follows no grammar is 400', async () => {
  await using server = await start({ onUpgrade: (_request, socket) => sendRaw(socket, 426, '{}') })
  const invalid = [
    'a b',
    'a/b',
    'user@a',
    'a?b',
    'a#b',
    'http://a',
    'a:80:80',
    'a:b',
    '[::1',
    '::1',
    '%zz',
    'a\\b',
    'ä',
  ]
  for (const host of invalid) {
    for (const more of ['', 'Connection: Upgrade\r\nUpgrade: websocket\r\n']) {
      const text = await raw(server, `GET / HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n${NEXT}`)
      assert.deepEqual(statusesOf(text), [400], host)
      assert.match(text, /\{"error":"invalid-host","message":"the Host header is not a host with an optional port"\}$/)
    }
  }
  const valid = [
    '',
    'a',
    'a.',
    'a-b_c.example:8899',
    'a:',
    '127.0.0.1:1',
    '[::1]',
    '[fe80::1%25eth0]:80',
    'a,b',
    'a%20b',
  ]
  for (const host of valid) {
    const text = await raw(server, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    assert.deepEqual(statusesOf(text), [200], host)
  }
})

test('a long response is sent whole before the refusal of the CONNECT behind it', async () => {
  const piece = 'x'.repeat(64 * 1024)
  await using server = await start({
    async onRequest(_request, response) {
      response.writeHead(200, { 'content-length': 64 * piece.length })
      for (let sent = 0; sent < 64; sent++) if (!response.write(piece)) await once(response, 'drain')
      response.end()
    },
  })
  const text = await raw(server, 'GET / HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n')
  assert.deepEqual(statusesOf(text), [200, 501])
  assert.ok(text.length > 64 * piece.length)
})

test('CONNECT is 501, behind the responses to the requests before', async () => {
  const tunnel = 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'
  for (const deps of [{}, { onUpgrade: () => assert.fail('no upgrade') }]) {
    await using server = await start(deps)
    const text = await raw(server, `${tunnel}${NEXT}`)
    assert.deepEqual(statusesOf(text), [501])
    assert.match(text, /\r\nconnection: close\r\n[^]*"error":"method-not-implemented"/)
    assert.deepEqual(statusesOf(await raw(server, `GET / HTTP/1.1\r\nHost: a\r\n\r\n${tunnel}`)), [200, 501])
  }
})
