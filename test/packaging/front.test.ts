import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { makeTestCert, type TestCert } from '../../src/platform/net/test-cert.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { freePort } from '../support/machine/free-ports.ts'
import {
  type Front,
  type FrontKind,
  LISTENER_PORTS,
  type Server,
  startFrontSample,
} from '../support/machine/proxy-samples.ts'
import { type Served, serve } from '../support/process/serve.ts'

const SAMPLE_CONFIG = join(import.meta.dirname, '../../ops/front/sluice.toml')
/** Another loopback address, to distinguish the client from the proxy. */
const CLIENT_ADDRESS = '127.0.0.9'

describe('proxy samples', () => {
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let running: Served
  let cert: TestCert
  let token: string
  let behind: Record<Server, number>

  before(async () => {
    home = await temporaryFolder()
    cert = makeTestCert('localhost')
    running = serve({
      cwd: home.path,
      args: ['--config', SAMPLE_CONFIG, '--state', home.file('state'), '--demo'],
      env: {
        SLUICE_HOST: 'localhost',
        SLUICE_LOCALNET__ENABLED: 'true',
        SLUICE_EXECUTION__ENABLED: 'true',
        SLUICE_INDEXER__ENABLED: 'true',
      },
    })
    await running.line(/"msg":"started"/)
    token = /slc_[0-9A-Za-z]{38}/.exec(running.stdout())?.[0] ?? assert.fail()
    behind = { ...LISTENER_PORTS }
    for (const server of Object.keys(LISTENER_PORTS) as Server[])
      behind[server] = Number((await running.address(server)).split(':').at(-1))
  })
  after(async () => {
    await running[Symbol.asyncDispose]()
    cert[Symbol.dispose]()
    await home[Symbol.asyncDispose]()
  })

  test('the sample configuration uses the ports of the proxy samples', () => {
    const config = readFileSync(SAMPLE_CONFIG, 'utf8')
    for (const port of Object.values(LISTENER_PORTS))
      assert.match(config, new RegExp(`listen = "127\\.0\\.0\\.1:${port}"`))
  })

  for (const kind of ['nginx', 'haproxy', 'caddy'] as const satisfies FrontKind[]) {
    test(`${kind}: call, subscription, stream and page pass through TLS, with the client's address and no token in its log`, async () => {
      // Nothing listens on the sender's port: what a proxy logs for a failure must not contain a token either.
      await using front = await startFrontSample(kind, { ...behind, sender: await freePort() }, cert)
      await rpcCalls(front)
      await wsSubscription(front)
      await grpcStream(front)
      await executionStream(front)

      const call = (path: string) => get(front.ports.indexer, path)
      assert.equal((await call('/ping')).status, 200)
      const failed = await get(front.ports.sender, `/?api-key=${token}`, { 'x-token': token, 'x-api-key': token }, '{}')
      assert.ok(failed.status === 502 || failed.status === 503, `${failed.status}`)
      await until('the calls are in the log', () => (front.log().match(/POST/g)?.length ?? 0) >= 4)
      assert.ok(!front.log().includes(token), 'a token is in the log of the proxy')
    })
  }

  const tls = () => ({ ca: readFileSync(cert.cert), servername: 'localhost', localAddress: CLIENT_ADDRESS })

  async function rpcCalls({ ports }: Front): Promise<void> {
    const body = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}'
    for (const [path, headers] of [
      ['/', { 'x-token': token }],
      [`/?api-key=${token}`, {}],
    ] as const) {
      const response = await get(ports.rpc, path, { 'content-type': 'application/json', ...headers }, body)
      assert.equal(response.status, 200, response.text)
      assert.equal(typeof (JSON.parse(response.text) as { result: unknown }).result, 'number')
    }
    const refused = await get(ports.rpc, '/', { 'content-type': 'application/json' }, body)
    assert.equal(refused.status, 401)
  }

  /** Sends a forged client address, which must be ignored. */
  async function wsSubscription({ ports }: Front): Promise<void> {
    const socket = new WebSocket(`wss://localhost:${ports.ws}`, {
      headers: { 'x-token': token, 'x-forwarded-for': '192.0.2.7' },
      ...tls(),
      family: 4,
    })
    const reported: string[] = []
    socket.on('message', (data: Buffer) => reported.push(data.toString()))
    socket.on('open', () => socket.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}'))
    let failure: Error | undefined
    socket.on('error', (error) => (failure = error))
    try {
      await until('two slots were received', () => {
        if (failure !== undefined) throw failure
        return reported.filter((text) => text.includes('slotNotification')).length >= 2
      })
      const listed = await get(ports.rpc, '/v1/connections', { 'x-token': token })
      assert.match(listed.text, new RegExp(`"remote_address":"${CLIENT_ADDRESS.replaceAll('.', '\\.')}"`))
      assert.doesNotMatch(listed.text, /192\.0\.2\.7/)
    } finally {
      socket.terminate()
    }
  }

  async function grpcStream({ ports }: Front): Promise<void> {
    const client = new Client(`ipv4:127.0.0.1:${ports.grpc}`, credentials.createSsl(readFileSync(cert.cert)), {
      'grpc.ssl_target_name_override': 'localhost',
      'grpc.default_authority': `localhost:${ports.grpc}`,
    })
    try {
      const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
      stream.send(encodeMessage(SubscribeRequestSchema, { slots: { all: {} } }))
      let ended: string | undefined
      void stream.ended.then(({ code, details }) => (ended = `${code} ${details}`))
      await until('two updates were received', () => {
        assert.equal(ended, undefined)
        return stream.messages.length >= 2
      })
      stream.call.cancel()
    } finally {
      client.close()
    }
  }

  async function executionStream({ ports }: Front): Promise<void> {
    const page = await get(ports.execution, '/')
    assert.match(page.text, /<html/)
    const socket = new WebSocket(`wss://localhost:${ports.execution}/v1/ws`, { ...tls(), family: 4 })
    const frames: string[] = []
    socket.on('message', (data: Buffer) => frames.push(data.toString()))
    let failure: Error | undefined
    socket.on('error', (error) => (failure = error))
    await until('stream frames were received', () => {
      if (failure !== undefined) throw failure
      return frames.length >= 3
    })
    socket.terminate()
  }

  function get(
    port: number,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const method = body === undefined ? 'GET' : 'POST'
      const call = request(`https://localhost:${port}${path}`, { method, headers, ...tls(), family: 4 }, (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => (text += chunk.toString()))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      })
      call.on('error', reject)
      call.end(body)
    })
  }
})
