import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setImmediate as turnOfEventLoop } from 'node:timers/promises'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { makeTestCert } from '../../net/test-cert.ts'
import { createWriteBatching } from '../../net/write-batching.ts'
import { until } from '../../process/test-wait.ts'
import { FastPathOutput } from './fast-path-output.ts'

const BODY_BYTES = 60_000
const HEAD = 'HTTP/1.1 200 OK\r\n\r\n'

/** A connection whose peer reads nothing until it is resumed. */
async function openPair() {
  const server = createServer({ pauseOnConnect: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const peer = connect((server.address() as { port: number }).port, '127.0.0.1')
  peer.pause()
  await once(peer, 'connect')
  const [socket] = await accepted
  return {
    socket,
    peer,
    async [Symbol.asyncDispose]() {
      peer.destroy()
      socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The same over TLS. */
async function openTlsPair() {
  using cert = makeTestCert()
  const server = createTlsServer({ cert: readFileSync(cert.cert), key: readFileSync(cert.key) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'secureConnection') as Promise<[Socket]>
  const { port } = server.address() as { port: number }
  const peer = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(peer, 'secureConnect')
  peer.pause()
  const [socket] = await accepted
  return {
    socket,
    peer,
    async [Symbol.asyncDispose]() {
      peer.destroy()
      socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A body of one letter whose memory is overwritten as soon as it is released. */
function bodyOf(letter: string, bytes = BODY_BYTES) {
  const body = Buffer.alloc(bytes, letter)
  const pooled = { isReleased: false, release: () => void ((pooled.isReleased = true), body.fill('!')) }
  return { body, pooled }
}

describe('memory of a response body', () => {
  for (const kind of ['TCP', 'TLS'] as const) {
    it(`is released when the socket has written it, and never while a client over ${kind} that does not read keeps it waiting`, async () => {
      await using pair = await (kind === 'TLS' ? openTlsPair() : openPair())
      const output = new FastPathOutput(pair.socket, createWriteBatching(), () => {})
      const bodies: ReturnType<typeof bodyOf>[] = []
      const sent: string[] = []
      // Until the buffers of the kernel are full; bounded, since they have a largest size.
      while (pair.socket.writableLength < 2 * BODY_BYTES && sent.length < 1000) {
        const letter = 'abcdefgh'[sent.length % 8] as string
        const made = bodyOf(letter)
        bodies.push(made)
        output.write(HEAD, made.body, made)
        output.writeNow()
        sent.push(HEAD + letter.repeat(BODY_BYTES))
        await turnOfEventLoop()
      }
      // Those that the socket has not written are the last ones.
      const waiting = Math.ceil(pair.socket.writableLength / (BODY_BYTES + HEAD.length))
      assert.ok(waiting >= 2 && bodies[0]?.pooled.isReleased === true)
      assert.deepEqual(
        bodies.slice(-waiting).map((made) => made.pooled.isReleased),
        Array.from({ length: waiting }, () => false),
      )
      let received = ''
      pair.peer.on('data', (chunk: Buffer) => void (received += chunk.toString('latin1')))
      pair.peer.resume()
      await until('all bytes have come', () => received.length >= sent.join('').length)
      assert.ok(received === sent.join(''), 'the client got other bytes than were sent')
      // Over TCP what had to wait is left to the garbage collector.
      if (kind === 'TLS') await until('all memory is released', () => bodies.every((made) => made.pooled.isReleased))
    })
  }

  it('of a small body is released at once, since the text is a copy', async () => {
    await using pair = await openPair()
    const output = new FastPathOutput(pair.socket, createWriteBatching(), () => {})
    const { body, pooled } = bodyOf('s', 5000)
    output.write(HEAD, body, { pooled })
    assert.equal(pooled.isReleased, true)
    output.writeNow()
    pair.peer.resume()
    const [chunk] = (await once(pair.peer, 'data')) as [Buffer]
    assert.equal(chunk.toString('latin1').includes('!'), false)
  })

  it('is not released when the connection closes before the write', async () => {
    await using pair = await openPair()
    const output = new FastPathOutput(pair.socket, createWriteBatching(), () => {})
    const { body, pooled } = bodyOf('c')
    output.write(HEAD, body, { pooled })
    output.abort()
    output.writeNow()
    assert.equal(pooled.isReleased, false)
  })
})
