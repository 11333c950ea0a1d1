import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { makeTestCert } from '../../src/platform/net/test-cert.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startGateway } from '../support/gateway/start.ts'

const CLIENTS = 16
const ROUNDS = 12
/** Pooled in both sizes, not pooled, and streamed. */
const SIZES = [400, 5000, 16_000, 30_000, 60_000, 65_000, 200_000]

/** The largest pooled size that a client's connection takes in one piece. */
const POOLED_BYTES = 60_000
/** More than the buffers of both kernels hold, so that a client that does not read stops the gateway in the middle. */
const PIPELINED = 200
/** The node ends the connection in the middle of a response with this letter. */
const BREAKS_OFF = '!'
const UNLIMITED = { ...BUILT_IN_PLANS.professional, unitsPerSecond: 100_000_000, units: null }

/** A node whose response is as long as the first parameter states and contains the second. */
async function startEchoNode() {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { id, params } = JSON.parse(Buffer.concat(chunks).toString()) as { id: number; params?: [number, string] }
      const [bytes = 10, letter = 'x'] = params ?? []
      const body = JSON.stringify({ jsonrpc: '2.0', result: letter.repeat(bytes), id })
      // In two pieces, so that a response is not always read at once.
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
      response.write(body.slice(0, bytes >> 1))
      if (letter === BREAKS_OFF) return void setImmediate(() => request.socket.destroy())
      response.end(body.slice(bytes >> 1))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

test('parallel calls with bodies of every size each get their own body, compressed and not', async () => {
  await using node = await startEchoNode()
  await using gateway = await startGateway([{ name: 'a', rpc: node.url }])
  const { token } = await gateway.subscribe({ plan: 'professional' })
  let wrong = 0
  const client = async (number: number) => {
    for (let round = 0; round < ROUNDS; round++) {
      const bytes = SIZES[(number + round) % SIZES.length] as number
      const letter = String.fromCharCode(97 + ((number * ROUNDS + round) % 26))
      const response = await fetch(gateway.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-token': token,
          'accept-encoding': number % 3 === 0 ? 'gzip' : 'identity',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: number, method: 'getAccountInfo', params: [bytes, letter] }),
      })
      const expected = JSON.stringify({ jsonrpc: '2.0', result: letter.repeat(bytes), id: number })
      if ((await response.text()) !== expected) wrong += 1
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_nothing, number) => client(number)))
  assert.equal(wrong, 0)
})

const letterOf = (number: number) => String.fromCharCode(97 + (number % 26))
const callOf = (id: number, letter: string) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'getAccountInfo', params: [POOLED_BYTES, letter] })
const resultOf = (id: number, letter: string) =>
  JSON.stringify({ jsonrpc: '2.0', result: letter.repeat(POOLED_BYTES), id })

/** Sends all calls at once and reads nothing until it is resumed. */
function pipeline(socket: Socket, token: string, from: number) {
  const chunks: Buffer[] = []
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    bytes += chunk.length
  })
  socket.pause()
  for (let number = from; number < from + PIPELINED; number++) {
    const body = callOf(number, letterOf(number))
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nx-token: ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  }
  return {
    resume: () => socket.resume(),
    get bytes() {
      return bytes
    },
    bodies: () =>
      Buffer.concat(chunks)
        .toString('latin1')
        .split(/HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)+\r\n/)
        .slice(1),
  }
}

for (const kind of ['TCP', 'TLS'] as const) {
  test(`pipelined calls of clients over ${kind} that read late get their own bodies, while others use the memory again`, async () => {
    await using node = await startEchoNode()
    using cert = makeTestCert()
    const rpc = { host: '127.0.0.1', port: 0, ...(kind === 'TLS' && { tls: cert }) }
    const plans = { ...BUILT_IN_PLANS, unlimited: UNLIMITED }
    await using gateway = await startGateway([{ name: 'a', rpc: node.url }], plans, { bundle: { rpc } })
    const { token } = await gateway.subscribe({ plan: 'unlimited' })
    const { port } = gateway.bundle.rpc
    const open = () =>
      kind === 'TLS' ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : connect(port, '127.0.0.1')
    await using sockets = new AsyncDisposableStack()
    const clients = Array.from({ length: 4 }, (_nothing, number) => {
      const socket = sockets.adopt(open(), (opened) => void opened.destroy())
      return pipeline(socket, token, number * PIPELINED)
    })
    // The last client reads at once: when it has everything, the memory was used many times since the others stopped.
    const last = clients.at(-1)
    last?.resume()
    await until('the reading client has everything', () => last?.bodies().length === PIPELINED, 60_000)
    for (const client of clients) client.resume()
    await until(
      'the others have everything',
      () => clients.every(({ bytes }) => bytes >= PIPELINED * POOLED_BYTES),
      60_000,
    )
    await until('the last bytes came', () => clients.every((client) => client.bodies().length === PIPELINED))
    const wrong = clients.flatMap((client, number) =>
      client.bodies().filter((body, at) => {
        const id = number * PIPELINED + at
        return body !== resultOf(id, letterOf(id))
      }),
    )
    assert.equal(wrong.length, 0)
  })
}

test('a node that breaks off in the middle of a body spoils no other response', async () => {
  await using node = await startEchoNode()
  await using gateway = await startGateway([{ name: 'a', rpc: node.url }], { ...BUILT_IN_PLANS, unlimited: UNLIMITED })
  const { token } = await gateway.subscribe({ plan: 'unlimited' })
  const call = async (id: number, letter: string) => {
    const response = await fetch(gateway.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-token': token, 'accept-encoding': 'identity' },
      body: callOf(id, letter),
    })
    return { status: response.status, text: await response.text() }
  }
  const numbers = Array.from({ length: 64 }, (_nothing, number) => number)
  // Every eighth breaks off; too few in a row for the node to be taken out of use.
  const all = await Promise.all(numbers.map((id) => call(id, id % 8 === 7 ? BREAKS_OFF : letterOf(id))))
  for (const [id, { status, text }] of all.entries()) {
    if (id % 8 === 7) assert.ok(status >= 500 && !text.includes(BREAKS_OFF), text.slice(0, 200))
    else assert.ok(text === resultOf(id, letterOf(id)), `${id}: ${status} ${text.slice(0, 200)}`)
  }
})
