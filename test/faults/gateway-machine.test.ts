import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { makeTestCert } from '../../src/platform/net/test-cert.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { rawPost } from '../support/gateway/raw-post.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { startFakeNode } from './fake-node.ts'
import { onBusyMachine } from './gateway-rig.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'

const RESIDENTS = 16
/** For hundreds of connections on a machine that is busy with other tests. */
const PATIENT_MS = 60_000

const postOf = (token: string) =>
  `POST / HTTP/1.1\r\nhost: gateway\r\nx-token: ${token}\r\ncontent-type: application/json\r\ncontent-length: ${CALL.length}\r\n\r\n${CALL}`

/** Connections that request the health page, which needs no node, and stay open. Resolves when each has a response or is closed. */
async function openHeld(url: string, count: number) {
  const { hostname, port } = new URL(url)
  const held = Array.from({ length: count }, () => {
    const one = { socket: connect(Number(port), hostname), text: '', isClosed: false }
    one.socket.on('error', () => {})
    one.socket.on('data', (bytes: Buffer) => (one.text += bytes.toString('latin1')))
    one.socket.on('close', () => (one.isClosed = true))
    return one
  })
  const hasResponded = (text: string) => /\r\n\r\n./s.test(text)
  const send = (request: string) => {
    for (const one of held) {
      one.text = ''
      one.socket.write(request)
    }
  }
  send('GET /health HTTP/1.1\r\nhost: gateway\r\n\r\n')
  const isReported = () => held.every(({ text, isClosed }) => hasResponded(text) || isClosed)
  await until('each has a response or is closed', isReported, PATIENT_MS)
  return {
    send,
    isReported,
    texts: () => held.map(({ text }) => text),
    /** How many got which status; 0 where there was none. */
    statuses(): Record<number, number> {
      const counts: Record<number, number> = {}
      for (const { text } of held) {
        const status = hasResponded(text) ? Number(text.slice(9, 12)) : 0
        counts[status] = (counts[status] ?? 0) + 1
      }
      return counts
    },
    [Symbol.dispose]() {
      for (const { socket } of held) socket.destroy()
    },
  }
}

describe('F17: descriptors run out, connections storm, at the gateway', () => {
  test('F17: responds to new connections with 503 when descriptors run out, serves open ones, and recovers within a second', async (t) => {
    await using node = await startFakeNode()
    // The first call held may wait long for the last one.
    const config = `[upstreams.calls]\ndeadlineMs = ${2 * PATIENT_MS}\n`
    await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }], { config })
    const ask = () => rawPost(gateway.url, gateway.token, CALL).response
    assert.equal((await ask()).status, 200)
    using residents = await openHeld(gateway.url, RESIDENTS)
    assert.deepEqual(residents.statuses(), { 200: RESIDENTS })
    const pid = String(gateway.running.child.pid)
    const open = () => readdirSync(`/proc/${pid}/fd`).length
    const limit = open() + 80
    execFileSync('prlimit', ['--pid', pid, `--nofile=${limit}:`])
    // The process checks once per second.
    await until(
      'the limit is known',
      async () => {
        // More than are accepted, and fewer than there are descriptors: without any left the test could not observe.
        using few = await openHeld(gateway.url, 60)
        return (few.statuses()[503] ?? 0) > 0
      },
      PATIENT_MS,
    )

    for (let storm = 0; storm < 2; storm++) {
      using crowd = await openHeld(gateway.url, 150)
      const { 200: served = 0, 503: refused = 0, 429: limited = 0, 0: reset = 0 } = crowd.statuses()
      t.diagnostic(`${served} accepted, ${refused} refused with 503, ${reset} reset; ${open()} of ${limit} descriptors`)
      assert.ok(served > 0)
      assert.ok(refused > 0, 'some get a 503')
      assert.equal(served + refused + limited + reset, 150, 'every connection gets a response or a reset')
      assert.match(crowd.texts().find((text) => text.includes(' 503 ')) ?? '', /^retry-after: 1\r$/m)

      // Each needs its own connection to the node, and those are available.
      const release = Promise.withResolvers<void>()
      node.hold = release.promise
      const before = node.calls.length
      residents.send(postOf(gateway.token))
      // A read may be sent again.
      await until('all are at the node', () => node.calls.length >= before + RESIDENTS, PATIENT_MS)
      release.resolve()
      await until('each has a response or is closed', residents.isReported, PATIENT_MS)
      assert.deepEqual(residents.statuses(), { 200: RESIDENTS })
      // The operator sees it.
      const metrics = await (await fetch(`${gateway.metrics}/metrics`)).text()
      const counted = /^sluice_process_connections_refused_total\{listener="rpc",reason="descriptors",.*\} (\d+)/m.exec(
        metrics,
      )
      assert.ok(Number(counted?.[1]) >= refused + reset)

      const fromMs = performance.now()
      crowd[Symbol.dispose]()
      await until('it serves again', async () => (await ask().catch(() => ({ status: 0 }))).status === 200)
      const tookMs = performance.now() - fromMs
      t.diagnostic(`served ${tookMs.toFixed(0)} ms after descriptors were free (figure: 1000)`)
      assert.ok(tookMs <= onBusyMachine(1000, 5000), `${tookMs} ms`)
      await until('the descriptors are free', () => open() < limit - 40)
    }
    assert.equal(await gateway.running.stop(), 0)
  })

  test('F17: storms of resets and aborted calls leak nothing', async () => {
    await using node = await startFakeNode()
    node.respond = () => ({ result: '0' })
    await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
    const { hostname, port } = new URL(gateway.url)
    const pid = String(gateway.running.child.pid)
    const open = () => readdirSync(`/proc/${pid}/fd`).length
    assert.equal((await rawPost(gateway.url, gateway.token, CALL).response).status, 200)
    const before = open()
    for (let round = 0; round < 5; round++) {
      const storm = Array.from({ length: 200 }, (_, at) => {
        if (at % 2 === 0) return rawPost(gateway.url, gateway.token, CALL).socket
        return connect(Number(port), hostname)
      })
      for (const socket of storm) socket.on('error', () => {})
      await until('they are connected', () => storm.every((socket) => !socket.connecting))
      for (const socket of storm) socket.resetAndDestroy()
    }
    assert.equal((await rawPost(gateway.url, gateway.token, CALL).response).status, 200)
    // Kept connections to the node remain, and are bounded.
    await until('the descriptors are free', () => open() <= before + 260)
    assert.equal(await gateway.running.stop(), 0)
  })
})

test('F19: uses a renewed certificate on all three servers, drops no connection, and exports its end as a metric', async () => {
  await using node = await startFakeNode()
  using cert = makeTestCert('first', 90)
  const servers = ['rpc', 'ws', 'grpc'].map(
    (server) => `[bundle.${server}]\ntls = { cert = "${cert.cert}", key = "${cert.key}" }\n`,
  )
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc, ws: node.ws, grpc: node.grpc }], {
    config: servers.join(''),
    tls: cert,
  })
  const positions = { rpc: gateway.url, ws: gateway.ws, grpc: `https://${gateway.grpc}` }
  const nameAt = async (url: string) => {
    const { hostname, port } = new URL(url)
    const socket: TLSSocket = connectTls({
      host: hostname,
      port: Number(port),
      rejectUnauthorized: false,
      ...(url === positions.grpc ? { ALPNProtocols: ['h2'] } : {}),
    })
    try {
      await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
      return String(socket.getPeerCertificate().subject.CN)
    } finally {
      socket.destroy()
    }
  }
  const notAfter = async (server: string) => {
    const text = await (await fetch(`${gateway.metrics}/metrics`)).text()
    return Number(
      new RegExp(`^sluice_tls_not_after_timestamp_seconds\\{[^}]*"${server}"[^}]*\\} (\\S+)`, 'm').exec(text)?.[1],
    )
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'x-token': gateway.token }
      const asked = request(gateway.url, { method: 'POST', agent, headers }, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
      })
      asked.on('error', reject)
      asked.end(CALL)
    })
  let handshakes = 0
  agent.on('keylog', () => void (handshakes += 1))
  assert.equal(await ask(), 200)
  const before = handshakes
  const socket = new WebSocket(gateway.ws, { headers: { 'x-token': gateway.token }, rejectUnauthorized: false })
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  const session = connectHttp2(positions.grpc, { rejectUnauthorized: false })
  await new Promise((resolve, reject) => session.once('connect', resolve).once('error', reject))
  let dropped = 0
  socket.on('close', () => void (dropped += 1))
  session.on('close', () => void (dropped += 1))
  for (const url of Object.values(positions)) assert.equal(await nameAt(url), 'first')
  const ends = await notAfter('rpc')
  assert.ok(Math.abs(ends - (Date.now() / 1000 + 90 * 86_400)) < 7200, `${ends}`)

  cert.renew('second', 30)
  for (const [server, url] of Object.entries(positions)) {
    await until(`${server} shows the new one`, async () => (await nameAt(url)) === 'second')
    await until(`${server} exports its end`, async () => (await notAfter(server)) < ends)
  }
  assert.equal(await ask(), 200)
  assert.equal(handshakes, before, 'the connection of before is still in use')
  assert.equal(dropped, 0)
  assert.equal(socket.readyState, WebSocket.OPEN)
  session.destroy()
  socket.terminate()
  agent.destroy()
})
