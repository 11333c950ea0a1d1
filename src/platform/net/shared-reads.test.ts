import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { until } from '../process/test-wait.ts'
import { type Listener, openListener } from './listener.ts'

const LOOPBACK = { host: '127.0.0.1', port: 0 }

function open(buffer: Buffer, onConnection: (socket: Socket) => void): Promise<Listener> {
  return openListener(LOOPBACK, { onConnection, allowHalfOpen: true, readBuffer: buffer })
}

test('all connections read into one buffer, and each gets its own bytes', async () => {
  const buffer = Buffer.alloc(1024)
  let outside = 0
  await using listener = await open(buffer, (socket) => {
    socket.on('data', (chunk: Buffer) => {
      if (chunk.buffer !== buffer.buffer) outside += 1
      socket.write(Buffer.from(chunk))
    })
    socket.on('end', () => socket.end())
  })
  const clients = await Promise.all(
    Array.from({ length: 20 }, async (_nothing, at) => {
      const socket = connect(listener.address.port, '127.0.0.1')
      const message = String(at).repeat(3000)
      let heard = ''
      socket.on('data', (chunk) => {
        heard += String(chunk)
      })
      socket.write(message)
      await until('the echo is complete', () => heard.length >= message.length)
      assert.equal(heard, message)
      return socket
    }),
  )
  assert.equal(outside, 0)
  assert.equal(listener.connections(), 20)
  for (const socket of clients) socket.destroy()
  await until('no connection is open', () => listener.connections() === 0)
})

test('supports half-close and pause', async () => {
  const heard: string[] = []
  const taken = Promise.withResolvers<Socket>()
  await using listener = await open(Buffer.alloc(64), (socket) => {
    socket.on('data', (chunk: Buffer) => heard.push(String(chunk)))
    socket.on('end', () => socket.end('farewell'))
    taken.resolve(socket)
  })
  const client = connect(listener.address.port, '127.0.0.1')
  const socket = await taken.promise
  assert.equal(socket.remoteAddress, '127.0.0.1')
  client.write('one')
  await until('the bytes came', () => heard.join('') === 'one')
  socket.pause()
  client.end('two')
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(heard.join(''), 'one')
  socket.resume()
  const [response] = (await once(client, 'data')) as [Buffer]
  assert.deepEqual([heard.join(''), String(response)], ['onetwo', 'farewell'])
})

test('node:http can take over such a connection with unshifted bytes', async () => {
  const http = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.end(request.url))
  })
  await using listener = await open(Buffer.alloc(64 * 1024), (socket) => {
    socket.once('data', (chunk: Buffer) => {
      socket.pause()
      socket.unshift(Buffer.from(chunk))
      http.emit('connection', socket)
      socket.resume()
    })
  })
  const client = connect(listener.address.port, '127.0.0.1')
  let text = ''
  client.on('data', (chunk) => {
    text += String(chunk)
  })
  client.write('GET /first HTTP/1.1\r\nHost: a\r\n')
  client.write('\r\n')
  await until('the first response', () => text.includes('/first'))
  client.write(`POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(100_000)}`)
  await until('the second response', () => text.includes('/second'))
  client.destroy()
  http.closeAllConnections()
})
