import assert from 'node:assert/strict'
import { globSync, readFileSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { PING, rawCall } from '../support/gateway/grpc.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { openWsTestClient } from '../support/gateway/ws-client.ts'

/** Well-formed and unknown: the second of the published test vectors. */
const STRANGER = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'
const BASIC = Buffer.from('someone:canary-password-5150').toString('base64')
const REFERER = 'https://shop.example/?session=canary-session-90210'
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'

test('T3: no secret is in a log, a metric, a response, the audit log, the process list, a config dump or at the node', async () => {
  await using node = await startFakeNode()
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc, ws: node.ws, grpc: node.grpc }], {
    config: '[log]\nlevel = "trace"\n',
  })
  const { token, url } = gateway
  let responses = ''
  const { port, hostname } = new URL(url)
  /** Over a raw socket, so that no client normalizes the request; every byte of the response is kept. */
  const raw = (text: string, isKept = true) =>
    new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => socket.end(text))
      socket.on('data', (chunk: Buffer) => (responses += isKept ? chunk.toString('latin1') : ''))
      socket.on('error', () => {})
      socket.on('close', () => resolve())
    })
  const carriers = (secret: string) => [
    `x-token: ${secret}`,
    `X-API-KEY: ${secret}`,
    `Authorization: Bearer ${secret}`,
    `Authorization: Basic ${secret}`,
    `Authorization: Basic ${BASIC}`,
    `x-token: ${secret}\r\nx-token: ${secret}`,
    `Cookie: token=${secret}`,
    `x-request-id: ${secret}`,
    `traceparent: ${secret}`,
    `x-forwarded-for: ${secret}`,
  ]
  const asking: Promise<void>[] = []
  for (const secret of [token, STRANGER, `${token}x`]) {
    for (const path of [
      '/',
      `/?api-key=${secret}`,
      `/?api_key=${secret}&x`,
      `/${secret}`,
      `/v1/whoami?api-key=${secret}`,
      `/v1/nothing/${secret}?token=${secret}`,
      `http://gateway/?api-key=${secret}`,
    ]) {
      for (const header of carriers(secret)) {
        const head = `host: gateway\r\n${header}\r\nreferer: ${REFERER}\r\nconnection: close\r\ncontent-type: application/json\r\n`
        asking.push(raw(`POST ${path} HTTP/1.1\r\n${head}content-length: ${CALL.length}\r\n\r\n${CALL}`))
      }
      asking.push(raw(`GET ${path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n`))
    }
    // Not HTTP at all.
    await raw(`${secret}\r\n\r\n`)
    await raw(`POST / HTTP/1.1\r\nx-token : ${secret}\r\n\r\n`)
    await raw(`POST /?api-key=${secret} HTTP/9.9\r\n\r\n`)
    // In the body: as a method, a parameter, an id, and not as JSON.
    for (const body of [
      `{"jsonrpc":"2.0","id":"${secret}","method":"getBalance"}`,
      `{"jsonrpc":"2.0","id":1,"method":"${secret}"}`,
      `{"api-key":"${secret}`,
    ]) {
      const head = `host: gateway\r\nx-token: ${token}\r\nconnection: close\r\ncontent-type: application/json\r\n`
      // Its response is not kept: an id is the caller's own and is returned unchanged.
      asking.push(raw(`POST / HTTP/1.1\r\n${head}content-length: ${body.length}\r\n\r\n${body}`, false))
    }
    const grpcPort = Number(gateway.grpc.split(':')[1])
    for (const path of [PING, `${PING}?api-key=${secret}`, `/geyser.Geyser/${secret}`]) {
      const called = rawCall(grpcPort, path, [['x-token', secret]], frameMessage(Buffer.alloc(0)))
      asking.push(
        called.then(({ headers, message, body }) => {
          responses += `${JSON.stringify(headers)} ${message} ${body.toString()}`
        }),
      )
    }
    for (const address of [`${gateway.ws}/?api-key=${secret}`, `${gateway.ws}/?ticket=${secret}`]) {
      asking.push(
        new Promise<void>((resolve) => {
          const socket = new WebSocket(address, { headers: { authorization: `Basic ${BASIC}` } })
          socket.on('error', () => {})
          socket.on('unexpected-response', (_, response) => {
            response.on('data', (chunk: Buffer) => (responses += chunk.toString()))
            response.on('end', () => resolve())
          })
          socket.on('open', () => {
            socket.terminate()
            resolve()
          })
        }),
      )
    }
  }
  await Promise.all(asking)
  const asked = await fetch(`${url}/v1/ws-ticket`, { method: 'POST', headers: { 'x-token': token } })
  const { ticket, url: ticketUrl } = (await asked.json()) as { ticket: string; url: string }
  const client = await openWsTestClient(ticketUrl, { origin: REFERER })
  await client.call('slotSubscribe')
  client.socket.terminate()

  const pid = String(gateway.running.child.pid)
  const processList = globSync('/proc/[0-9]*/cmdline').map((path) => {
    try {
      return readFileSync(path, 'latin1')
    } catch {
      return ''
    }
  })
  const metrics = await (await fetch(`${gateway.metrics}/metrics`)).text()
  const dumps = [
    await gateway.sluice('config', 'show'),
    await gateway.sluice('sub', 'show', 'acme-prod'),
    await gateway.sluice('audit', 'tail', '--json'),
    await gateway.sluice('status', '--json'),
    await gateway.sluice('upstream', 'list'),
  ]
  assert.equal(await gateway.running.stop(), 0)
  const state = join(dirname(gateway.configFile), '.sluice')
  const files = globSync('**/*', { cwd: state })
    .map((name) => join(state, name))
    .filter((path) => statSync(path).isFile())
  assert.ok(files.some((path) => path.endsWith('audit.log')))
  const atNode = [...node.requests].filter(({ method }) => !method.includes('slc_'))
  const positions: [string, string][] = [
    ['responses', responses],
    ['log', gateway.running.stdout() + gateway.running.stderr()],
    ['metrics', metrics],
    [
      'node',
      atNode.map(({ url: at, headers }) => `${at} ${JSON.stringify(headers)}`).join('\n') +
        JSON.stringify(node.handshakes),
    ],
    ['process list', processList.join('\n')],
    ['commands', dumps.map(({ stdout, stderr }) => stdout + stderr).join('\n')],
    ...files.map((path): [string, string] => [path.slice(state.length), readFileSync(path, 'latin1')]),
  ]
  assert.ok(processList.some((text) => text.includes('serve')) && pid !== 'undefined')
  // Whole values and their secret middles; the last four characters are shown on purpose.
  const canaries = [token, STRANGER, ticket, BASIC].flatMap((secret) => [secret, secret.slice(6, 36)])
  for (const [position, text] of positions) {
    for (const canary of [...canaries, 'canary-password-5150', 'canary-session-90210']) {
      const at = text.indexOf(canary)
      assert.equal(at, -1, `${position}: …${text.slice(Math.max(0, at - 80), at)}`)
    }
    if (position === 'log' || position === 'node') assert.doesNotMatch(text, /api[-_]key=/, position)
  }
})
