import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { makeTestCert } from '../../src/host/test-cert.ts'
import { until } from '../../src/host/test-wait.ts'
import { rawPost } from '../support/raw-post.ts'
import { startServedGateway } from '../support/served-gateway.ts'
import { startFakeNode } from './fake-node.ts'
import { onBusyMachine } from './gateway-rig.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'

describe('F17: descriptors run out, connections storm, at the gateway', () => {
  test('F17: out of descriptors it lives on, and serves within a second of having some again', async (t) => {
    await using node = await startFakeNode()
    await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
    const ask = () => rawPost(gateway.url, gateway.token, CALL).answer
    assert.equal((await ask()).status, 200)
    const pid = String(gateway.running.child.pid)
    const open = () => readdirSync(`/proc/${pid}/fd`).length
    const limit = open() + 10
    execFileSync('prlimit', ['--pid', pid, `--nofile=${limit}:`])
    const { hostname, port } = new URL(gateway.url)
    const sockets = Array.from({ length: 100 }, () => connect(Number(port), hostname).on('error', () => {}))
    await until(
      'no descriptor is left',
      () => open() >= limit - 2 && sockets.some((socket) => socket.destroyed || !socket.connecting),
    )
    // A resident of the process that needs no new descriptor is served all the while; here: it is alive and answers nobody wrongly.
    assert.equal(gateway.running.child.exitCode, null)
    const fromMs = performance.now()
    for (const socket of sockets) socket.destroy()
    await until('it serves again', async () => (await ask().catch(() => ({ status: 0 }))).status === 200)
    const tookMs = performance.now() - fromMs
    t.diagnostic(`served ${tookMs.toFixed(0)} ms after descriptors were free (figure: 1000)`)
    assert.ok(tookMs <= onBusyMachine(1000, 5000), `${tookMs} ms`)
    assert.equal(await gateway.running.stop(), 0)
  })

  test('F17: storms of resets and of calls cut off leave nothing behind', async () => {
    await using node = await startFakeNode()
    node.answer = () => ({ result: '0' })
    await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
    const { hostname, port } = new URL(gateway.url)
    const pid = String(gateway.running.child.pid)
    const open = () => readdirSync(`/proc/${pid}/fd`).length
    assert.equal((await rawPost(gateway.url, gateway.token, CALL).answer).status, 200)
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
    assert.equal((await rawPost(gateway.url, gateway.token, CALL).answer).status, 200)
    // Kept connections to the node remain, and are bounded.
    await until('the descriptors are free', () => open() <= before + 260)
    assert.equal(await gateway.running.stop(), 0)
  })
})

test('F19: a renewed certificate is taken on all three doors, no connection is dropped, and its end is a metric', async () => {
  await using node = await startFakeNode()
  using cert = makeTestCert('first', 90)
  const doors = ['rpc', 'ws', 'grpc'].map(
    (door) => `[bundle.${door}]\ntls = { cert = "${cert.cert}", key = "${cert.key}" }\n`,
  )
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc, ws: node.ws, grpc: node.grpc }], {
    config: doors.join(''),
    tls: cert,
  })
  const places = { rpc: gateway.url, ws: gateway.ws, grpc: `https://${gateway.grpc}` }
  const nameAt = async (url: string) => {
    const { hostname, port } = new URL(url)
    const socket: TLSSocket = connectTls({
      host: hostname,
      port: Number(port),
      rejectUnauthorized: false,
      ...(url === places.grpc ? { ALPNProtocols: ['h2'] } : {}),
    })
    try {
      await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
      return String(socket.getPeerCertificate().subject.CN)
    } finally {
      socket.destroy()
    }
  }
  const notAfter = async (door: string) => {
    const text = await (await fetch(`${gateway.metrics}/metrics`)).text()
    return Number(
      new RegExp(`^sluice_tls_not_after_timestamp_seconds\\{[^}]*"${door}"[^}]*\\} (\\S+)`, 'm').exec(text)?.[1],
    )
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'x-token': gateway.token }
      const asked = request(gateway.url, { method: 'POST', agent, headers }, (answer) => {
        answer.resume()
        answer.on('end', () => resolve(answer.statusCode ?? 0))
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
  const session = connectHttp2(places.grpc, { rejectUnauthorized: false })
  await new Promise((resolve, reject) => session.once('connect', resolve).once('error', reject))
  let dropped = 0
  socket.on('close', () => void (dropped += 1))
  session.on('close', () => void (dropped += 1))
  for (const url of Object.values(places)) assert.equal(await nameAt(url), 'first')
  const ends = await notAfter('rpc')
  assert.ok(Math.abs(ends - (Date.now() / 1000 + 90 * 86_400)) < 7200, `${ends}`)

  cert.renew('second', 30)
  for (const [door, url] of Object.entries(places)) {
    await until(`${door} shows the new one`, async () => (await nameAt(url)) === 'second')
    await until(`${door} tells its end`, async () => (await notAfter(door)) < ends)
  }
  assert.equal(await ask(), 200)
  assert.equal(handshakes, before, 'the connection of before is still in use')
  assert.equal(dropped, 0)
  assert.equal(socket.readyState, WebSocket.OPEN)
  session.destroy()
  socket.terminate()
  agent.destroy()
})
