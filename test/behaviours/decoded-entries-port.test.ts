import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { Client, credentials, type StatusObject, status } from '@grpc/grpc-js'
import type { DecodedReader } from '../../src/gateway/geyser/decoded/source.ts'
import { createDecodedStreams } from '../../src/gateway/geyser/decoded/streams.ts'
import { makeTestCert } from '../../src/platform/net/test-cert.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { openStream, SUBSCRIBE, startGrpcGateway, tokenMetadata } from '../support/gateway/grpc.ts'
import { serve } from '../support/process/serve.ts'
import { makeStore } from '../support/store/make-store.ts'

const DESHRED = '/geyser.Geyser/SubscribeDeshred'
const ENTRIES = '/shredstream.ShredstreamProxy/SubscribeEntries'
const raw = (bytes: Buffer) => bytes

function openEntries(client: Client, token: string) {
  const call = client.makeServerStreamRequest(ENTRIES, raw, raw, Buffer.alloc(0), tokenMetadata(token))
  const messages: Buffer[] = []
  const ended = Promise.withResolvers<StatusObject>()
  call.on('data', (message: Buffer) => messages.push(message))
  call.on('error', () => {})
  call.on('status', ended.resolve)
  return { call, messages, ended: ended.promise }
}

/** The status code of a health check of one service. */
function checkHealth(client: Client, service: string): Promise<status> {
  const request = Buffer.concat([Buffer.of(0x0a, service.length), Buffer.from(service)])
  return new Promise((resolve) => {
    client.makeUnaryRequest('/grpc.health.v1.Health/Check', raw, raw, request, (error) =>
      resolve(error?.code ?? status.OK),
    )
  })
}

/** Streams whose source is the test: `reader` while one is open. */
function openStreams() {
  const opened: { reader: DecodedReader | undefined } = { reader: undefined }
  const streams = createDecodedStreams(
    { filtersMax: 4, pendingBytesMax: 65_536 },
    {
      clock: systemClock,
      source: {
        read(given) {
          opened.reader = given
          return { [Symbol.dispose]: () => void (opened.reader = undefined) }
        },
      },
      meter: { delivered: () => undefined, lost: () => undefined },
    },
  )
  return Object.assign(opened, {
    streams,
    publish(): void {
      const set = { slot: 7, startIndex: 0, endIndex: 32, entries: Buffer.from('e'), transactions: [], arrivalNanos: 0 }
      opened.reader?.onDataSet(set)
      void opened.reader?.onBatchEnd()
    },
    [Symbol.dispose]: () => streams[Symbol.dispose](),
  })
}

test('a port for entries alone: same token, product, permits and drain, and no other method', async () => {
  using decoded = openStreams()
  await using node = await startFakeNode()
  const nodes = [{ name: 'fake', grpc: `http://127.0.0.1:${node.ports.grpc}` }]
  await using on = await startGrpcGateway(nodes, { refusalDelayMs: 10, serves: 'entries' }, undefined, decoded.streams)
  const { token, id } = await on.gateway.subscribe({
    products: ['shreds-decoded', 'bundle'],
    overrides: { grpcStreams: 1 },
  })
  const stream = openEntries(on.client, token)
  await until(
    'the stream is open',
    () => decoded.reader !== undefined && on.gateway.access.permits.taken(id).grpcStreams === 1,
  )
  await until('entries arrive', () => {
    decoded.publish()
    return stream.messages.length > 0
  })
  assert.deepEqual(stream.messages[0], Buffer.from([0x08, 7, 0x12, 1, 0x65]))
  const second = await openEntries(on.client, token).ended
  assert.deepEqual([second.code, /limit: grpcStreams/.test(second.details)], [status.RESOURCE_EXHAUSTED, true])
  const { token: without } = await on.gateway.subscribe({ products: ['bundle'] })
  assert.equal((await openEntries(on.client, without).ended).code, status.PERMISSION_DENIED)
  for (const path of [DESHRED, SUBSCRIBE]) {
    const { code, details } = await openStream(on.client, path, tokenMetadata(token)).ended
    assert.deepEqual([code, details.startsWith('only shredstream.')], [status.UNIMPLEMENTED, true], details)
  }
  assert.equal(node.calls.filter(({ method }) => String(method).includes('Subscribe')).length, 0)
  assert.equal(await checkHealth(on.client, 'shredstream.ShredstreamProxy'), status.OK)
  assert.equal(await checkHealth(on.client, 'geyser.Geyser'), status.NOT_FOUND)
  await on.server.drain(1000)
  assert.equal((await stream.ended).code, status.UNAVAILABLE)
})

test('the port with TLS: entries over a certificate that the client verifies, and a token that is not valid is refused', async () => {
  using decoded = openStreams()
  using files = makeTestCert()
  const listen = { host: '127.0.0.1', port: 0, tls: { cert: files.cert, key: files.key } }
  await using on = await startGrpcGateway(
    [],
    { listen, refusalDelayMs: 10, serves: 'entries' },
    undefined,
    decoded.streams,
  )
  const { token } = await on.gateway.subscribe({ products: ['shreds-decoded'] })
  const client = new Client(`localhost:${on.port}`, credentials.createSsl(readFileSync(files.cert)))
  const stream = openEntries(client, token)
  await until('entries arrive', () => {
    decoded.publish()
    return stream.messages.length > 0
  })
  assert.deepEqual(stream.messages[0], Buffer.from([0x08, 7, 0x12, 1, 0x65]))
  assert.equal((await openEntries(client, `${token}x`).ended).code, status.PERMISSION_DENIED)
  stream.call.cancel()
  client.close()
})

test('sluice gateway opens the port in each of its threads, and responds that it has no shreds', async () => {
  await using home = await temporaryFolder()
  await using node = await startFakeNode()
  writeFileSync(
    home.file('sluice.toml'),
    `[[upstreams.nodes]]\nname = "fake"\nrpc = "http://127.0.0.1:${node.ports.rpc}"\n`,
  )
  await makeStore(home.file('.sluice'))
  await using running = serve({
    cwd: home.path,
    command: 'gateway',
    workers: 2,
    env: {
      SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true',
      SLUICE_BUNDLE__ENTRIES__ENABLED: 'true',
      SLUICE_BUNDLE__ENTRIES__LISTEN: '127.0.0.1:0',
    },
  })
  await running.line(/bundle\.entries is on, and this process has no shreds to decode/)
  const client = new Client(await running.address('entries'), credentials.createInsecure())
  const { code, details } = await openEntries(client, 'slc_any').ended
  assert.deepEqual(
    [code, details],
    [
      status.UNIMPLEMENTED,
      'SubscribeEntries is not served here: this process decodes no shreds. Use the address of one that does; sluice serve decodes them where products.shreds-decoded.status is preview',
    ],
  )
  client.close()
})
