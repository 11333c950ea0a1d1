import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { until } from '../../process/test-wait.ts'
import { createHttpClient, HttpCallFailed, readReplyText } from './client.ts'

describe('HTTP client with streaming responses', () => {
  let server: Server
  let url: string
  let respond: (request: IncomingMessage, response: ServerResponse) => void
  before(async () => {
    server = createServer((request, response) => respond(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  const open = () => createHttpClient({ url, connectionsMax: 2, connectMs: 2000 })

  test('sends the body with its length and no headers of its own', async () => {
    using client = open()
    let reported: IncomingMessage | undefined
    respond = (request, response) => {
      reported = request
      request.pipe(response)
    }
    const reply = await client.send({
      method: 'POST',
      target: '/x?y=1',
      headers: { 'x-a': 'b' },
      body: Buffer.from('hello'),
    })
    assert.equal(await readReplyText(reply, 100), 'hello')
    assert.equal(reported?.url, '/x?y=1')
    assert.deepEqual(Object.keys(reported?.headers ?? {}).toSorted(), ['connection', 'content-length', 'host', 'x-a'])
  })

  test('rejects where the server switches protocols or closes without a response', async () => {
    using client = open()
    for (const head of ['HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', '']) {
      respond = (request) => request.socket.end(head)
      const failed = client.send({ method: 'POST', target: '/', headers: {}, body: Buffer.from('x') })
      await assert.rejects(failed, (error) => error instanceof HttpCallFailed && error.isSent)
    }
  })

  test('applies backpressure to the server', async () => {
    using client = open()
    const piece = Buffer.alloc(64 * 1024)
    let sent = 0
    let isFull = false
    respond = (_request, response) => {
      const more = (): void => {
        for (; sent < 1024 && !isFull; sent++) isFull = !response.write(piece)
        if (sent === 1024) response.end()
      }
      response.on('drain', () => {
        isFull = false
        more()
      })
      more()
    }
    const reply = await client.send({ method: 'GET', target: '/', headers: {} })
    await until('the server has to wait', () => isFull)
    assert.ok(sent < 1000, `${sent} pieces left the server unread`)
    let bytes = 0
    for await (const chunk of reply.body as AsyncIterable<Buffer>) bytes += chunk.length
    assert.equal(bytes, 1024 * piece.length)
  })

  test('a failed call states whether it was sent', async () => {
    using client = open()
    respond = (request) => void request.socket.destroy()
    await assert.rejects(client.send({ method: 'GET', target: '/', headers: {} }), (error: unknown) => {
      return error instanceof HttpCallFailed && error.isSent
    })
    using nobody = createHttpClient({ url: 'http://127.0.0.1:1', connectionsMax: 1, connectMs: 2000 })
    await assert.rejects(nobody.send({ method: 'GET', target: '/', headers: {} }), (error: unknown) => {
      return error instanceof HttpCallFailed && !error.isSent
    })
  })

  test('a signal aborts the call before and within its response', async () => {
    using client = open()
    let isClosed = false
    respond = (_request, response) => void response.on('close', () => (isClosed = true))
    const before_ = new AbortController()
    const pending = client.send({ method: 'GET', target: '/', headers: {}, signal: before_.signal })
    setImmediate(() => before_.abort())
    await assert.rejects(pending, HttpCallFailed)
    respond = (_request, response) => {
      response.on('close', () => (isClosed = true))
      response.write('begun')
    }
    isClosed = false
    const middle = new AbortController()
    const reply = await client.send({ method: 'GET', target: '/', headers: {}, signal: middle.signal })
    middle.abort()
    await assert.rejects(readReplyText(reply, 100))
    await until('the server sees it', () => isClosed)
  })

  test('readReplyText throws above its limit', async () => {
    using client = open()
    respond = (_request, response) => response.end(Buffer.alloc(2000))
    const reply = await client.send({ method: 'GET', target: '/', headers: {} })
    await assert.rejects(readReplyText(reply, 1000), /more than 1000 bytes/)
  })
})
