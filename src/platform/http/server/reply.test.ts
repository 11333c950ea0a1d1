import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../telemetry/logger.ts'
import { createPathRules, sendPathRefusal } from './path-rules.ts'
import { sendRaw } from './reply.ts'
import { type HttpServer, startHttpServer } from './server.ts'
import { raw } from './test-raw.ts'

const refusePath = createPathRules({ '/': ['GET'] }, { isPreflighted: true, upgradePaths: ['/ws'] })

const start = (): Promise<HttpServer> =>
  startHttpServer(
    { listen: { host: '127.0.0.1', port: 0 } },
    {
      log: silentLogger,
      onRequest(request, response) {
        const refusal = refusePath(request.method, request.url ?? '/')
        assert(refusal !== undefined)
        sendPathRefusal(response, refusal)
      },
      onUpgrade: (_request, socket) => sendRaw(socket, 400, '{}'),
    },
  )

test('a 426 ends the connection where the client closes it, where it speaks HTTP/1.0, and in a drain', async () => {
  await using server = await start()
  const closing = 'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  const usual = 'GET /ws HTTP/1.1\r\nHost: a\r\n\r\n'
  const old = 'GET /ws HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'
  for (const request of [closing, old]) {
    const text = await raw(server, request)
    assert.match(text, /^HTTP\/1\.1 426 [^]*\r\nconnection: close, Upgrade\r\n/)
    assert.doesNotMatch(text, /NOT CLOSED/)
  }
  const [first, second] = (await raw(server, usual + closing)).split(/(?=HTTP\/1\.1)/)
  assert.match(first ?? '', /\r\nconnection: Upgrade\r\n/)
  assert.match(second ?? '', /\r\nconnection: close, Upgrade\r\n/)
  server.beginLameDuck()
  const text = await raw(server, usual)
  assert.match(text, /\r\nconnection: close, Upgrade\r\n/)
  assert.doesNotMatch(text, /NOT CLOSED/)
})

test('responses without a response object have a date', async () => {
  await using server = await start()
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  for (const request of ['nonsense\r\n\r\n', `GET / HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`]) {
    const [, date = ''] = /\r\ndate: ([^\r]+ GMT)\r\n/i.exec(await raw(server, request)) ?? []
    assert.ok(Math.abs(Date.parse(date) - Date.now()) < 120_000, date)
  }
})
