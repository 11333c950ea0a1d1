import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
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

/** A body of one letter whose memory is overwritten as soon as it is released. */
function bodyOf(letter: string, bytes = BODY_BYTES) {
  const body = Buffer.alloc(bytes, letter)
  const pooled = { isReleased: false, release: () => void ((pooled.isReleased = true), body.fill('!')) }
  return { body, pooled }
}

describe('memory of a response body', () => {
  it('is released when the kernel has it, and never while a client that does not read keeps it waiting', async () => {
    await using pair = await openPair()
    const output = new FastPathOutput(pair.socket, createWriteBatching(), () => {})
    let sent = ''
    let released = 0
    // Until the buffers of the kernel are full; bounded, since they have a largest size.
    for (let number = 0; pair.socket.writableLength === 0 && number < 1000; number++) {
      const letter = 'abcdefgh'[number % 8] as string
      const { body, pooled } = bodyOf(letter)
      output.write(HEAD, body, { pooled })
      output.writeNow()
      sent += HEAD + letter.repeat(BODY_BYTES)
      if (pooled.isReleased) released += 1
      assert.equal(pooled.isReleased, pair.socket.writableLength === 0)
    }
    assert.ok(released > 0 && pair.socket.writableLength > 0)
    let received = ''
    pair.peer.on('data', (chunk: Buffer) => void (received += chunk.toString('latin1')))
    pair.peer.resume()
    await until('all bytes have come', () => received.length >= sent.length)
    assert.ok(received === sent, 'the client got other bytes than were sent')
  })

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
