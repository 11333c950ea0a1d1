import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { it } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { CANCELLED_CALLS } from '../../src/gateway/geyser/reset-flood-guard.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { serve } from '../support/process/serve.ts'

const ENTRIES_MAX = 4
const CALLS = 24
const GRPC_CONNECTIONS = 16
/** As in the message of the refusal. */
const EARLY_MAX = 100
/** Window in which early cancels of a subscription are counted. */
const WINDOW_MS = 10_000
/** In all. */
const CANCELS_MAX = 2000

it('two gateway threads together cache what `bundle.cache` allows', async () => {
  await using node = await startFakeNode()
  node.respond = (method) => (method === 'getBlock' ? { result: '{"blockhash":"x"}' } : undefined)
  await using folder = await temporaryFolder()
  await writeFile(
    folder.file('sluice.toml'),
    [
      `[bundle]\nworkers = 2\n[bundle.cache]\nenabled = true\nentriesMax = ${ENTRIES_MAX}`,
      '[sender]\nenabled = false\n[shreds]\nenabled = false',
      `[upstreams]\nallowPrivate = true\n[[upstreams.nodes]]\nname = "fake"\nrpc = "${node.rpc}"`,
    ].join('\n'),
  )
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice(words, { cwd: folder.path })
    assert.equal(code, 0, stderr)
    return stdout
  }
  await run('customer', 'add', 'acme')
  const unlimited = ['--units-per-second', 'unlimited', '--print-token', '--json']
  const { token } = JSON.parse(await run('sub', 'create', 'main', '--customer', 'acme', ...unlimited)) as {
    token: string
  }
  await using served = serve({ cwd: folder.path })
  const rpc = `http://${await served.address('rpc')}`
  const metrics = `http://${await served.address('metrics')}/metrics`
  await served.line(/"msg":"started"/)

  const value = async (name: string) => {
    const line = (await (await fetch(metrics)).text()).split('\n').find((each) => each.startsWith(`${name} `))
    return Number(line?.split(' ').at(-1))
  }
  for (let slot = 1; slot <= CALLS; slot++) {
    assert.match(await callAlone(rpc, token, slot), /"blockhash"/)
    // What a thread reads from its services is at a scrape as of now. Each thread has room for two.
    if (slot <= 2) assert.equal(await value('sluice_bundle_cache_entries'), slot)
  }
  assert.equal(await value('sluice_bundle_cache_lookups_total{result="miss"}'), CALLS)
  const entries = await value('sluice_bundle_cache_entries')
  assert(entries > 0 && entries <= ENTRIES_MAX, `${entries} entries`)
})

it('gRPC calls that a customer cancels at once are counted over both threads', async () => {
  await using node = await startFakeNode()
  let atNode = 0
  node.onGrpcCall = (call) => {
    atNode += 1
    call.onMessage(() => {})
    call.sendHeaders({})
  }
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc, grpc: node.grpc }], { workers: 2 })
  const [http2, clients] = [
    // Spread over both threads: all on one happens once in 30,000 runs.
    Array.from({ length: GRPC_CONNECTIONS }, () => connect(`http://${gateway.grpc}`)),
    Array.from(
      { length: GRPC_CONNECTIONS },
      () => new Client(gateway.grpc, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 }),
    ),
  ]
  const headers = {
    ':method': 'POST',
    ':path': SUBSCRIBE,
    'content-type': 'application/grpc',
    'x-token': gateway.token,
  }
  const startedMs = performance.now()
  await Promise.all(http2.map((session) => once(session, 'connect')))
  // One call after another, each cancelled when it has reached the node, until one is refused.
  // A connection with very many resets is ended (GOAWAY with ENHANCE_YOUR_CALM), where a slow machine needs more than one window.
  for (const session of http2) session.on('error', () => {})
  for (let count = 0, isRefused = false; count < CANCELS_MAX && !isRefused; count++) {
    const open = http2.filter((each) => !each.closed && !each.destroyed)
    const session = open[count % open.length] as ClientHttp2Session
    const before = atNode
    const stream = session.request(headers)
    stream.on('error', () => {})
    stream.on('response', (response) => (isRefused ||= response['grpc-status'] !== undefined))
    await until('it is at the node or refused', () => atNode > before || isRefused || session.destroyed)
    stream.close(constants.NGHTTP2_CANCEL)
    // The pong follows the reset, which the server has then read.
    if (!session.destroyed) await new Promise((resolve) => session.ping(resolve))
  }
  const next = async (client: Client) => {
    const { call, ended } = openStream(client, SUBSCRIBE, tokenMetadata(gateway.token))
    // A refusal comes after a delay; one that is not refused stays open.
    const cut = setTimeout(() => call.cancel(), 2500)
    const { details } = await ended.finally(() => clearTimeout(cut))
    return details.includes(CANCELLED_CALLS.what)
  }
  const refused = await Promise.all(clients.map(next))
  for (const session of http2) session.destroy()
  for (const client of clients) client.close()
  assert.deepEqual([...new Set(refused)], [true])
  // With a count in each thread as many again would have reached the node. On a busy machine the count may begin again after its window.
  const windows = 1 + Math.floor((performance.now() - startedMs) / WINDOW_MS)
  assert.ok(atNode >= EARLY_MAX && atNode < 1.5 * EARLY_MAX * windows, `${atNode} calls reached the node`)
})

/** On a connection of its own, so that the kernel spreads the calls over the threads. */
function callAlone(url: string, token: string, slot: number): Promise<string> {
  const body = `{"jsonrpc":"2.0","id":1,"method":"getBlock","params":[${slot},{"commitment":"finalized"}]}`
  const headers = { 'content-type': 'application/json', 'x-token': token, 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false })
    request(url, { method: 'POST', headers, agent }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => resolve(text))
    })
      .on('error', reject)
      .end(body)
  })
}
