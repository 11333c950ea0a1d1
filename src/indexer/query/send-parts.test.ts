import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { until } from '../../platform/process/test-wait.ts'
import { QueryError } from './error.ts'
import { createEncoder } from './response-encoding.ts'
import { type SendOptions, sendParts } from './send-parts.ts'

const MIB = Buffer.alloc(1024 * 1024, 7)

async function serve(parts: () => AsyncIterable<Uint8Array>, options: SendOptions) {
  const sent = Promise.withResolvers<QueryError | undefined>()
  const server = createServer((_, response) => sent.resolve(sendParts(response, parts(), options)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const [response] = (await once(get({ port, host: '127.0.0.1' }), 'response')) as [IncomingMessage]
  const end = { [Symbol.dispose]: () => (server.closeAllConnections(), void server.close()) }
  return { response, sent: sent.promise, end }
}

test('the time for which a client waits for its result is not the time for which the result waits for its client', async () => {
  const waits: boolean[] = []
  const next = Promise.withResolvers<void>()
  async function* late(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('first')
    await next.promise
    for (let part = 0; part < 64; part++) yield MIB
  }
  const { response, sent, end } = await serve(late, {
    encoders: [],
    exceptionTag: undefined,
    onWait: (isWaiting) => waits.push(isWaiting),
  })
  using _ = end
  await once(response, 'readable')
  assert.equal(String(response.read()), 'first')
  assert.deepEqual(waits, [])
  next.resolve()
  await until('the client is behind', () => waits.at(-1) === true, 60_000)
  let bytes = 0
  for await (const part of response) bytes += (part as Buffer).length
  assert.equal(bytes, 64 * MIB.length)
  assert.equal(await sent, undefined)
  assert.equal(waits.at(-1), false)
})

test('large parts are written in small pieces, since a client makes progress piece by piece', async () => {
  const sizes: number[] = []
  async function* two(): AsyncGenerator<Uint8Array> {
    yield MIB
    yield Buffer.from('end')
  }
  const { response, sent, end } = await serve(two, {
    encoders: [],
    exceptionTag: undefined,
    onSent: (bytes) => sizes.push(bytes),
  })
  using _ = end
  const parts = (await Array.fromAsync(response as AsyncIterable<Buffer>)) as Buffer[]
  await sent
  assert.ok(Buffer.concat(parts).equals(Buffer.concat([MIB, Buffer.from('end')])))
  assert.ok(Math.max(...sizes) <= 64 * 1024)
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    MIB.length + 3,
  )
})

test('an error after the first part is complete inside of the compressed body, which has no end', async () => {
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('rows')
    throw new QueryError('TIMEOUT_EXCEEDED', 'Timeout exceeded.')
  }
  const { response, sent, end } = await serve(failing, { encoders: [createEncoder('gzip')], exceptionTag: 'tag' })
  using _ = end
  const parts: Buffer[] = []
  await assert.rejects(async () => {
    for await (const part of response) parts.push(part as Buffer)
  }, /aborted/)
  assert.match(
    gunzipSync(Buffer.concat(parts)).toString(),
    /^rows\r\n__exception__\r\ntag\r\nCode: 159\. DB::Exception: Timeout exceeded\. \(TIMEOUT_EXCEEDED\)\n\d+ tag\r\n__exception__\r\n$/,
  )
  assert.equal((await sent)?.type, 'TIMEOUT_EXCEEDED')
})
