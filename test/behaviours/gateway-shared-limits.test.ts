import assert from 'node:assert/strict'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { createSharedLimits, openSharedLimits } from '../../src/gateway/limits.ts'
import { FAILURES_MAX } from '../../src/platform/net/auth-tarpit.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startGateway } from '../support/gateway/start.ts'

/** Two gateways as two threads would run them: each opens the memory under a number of its own. */
async function startPair() {
  await using opening = new AsyncDisposableStack()
  const node = opening.use(await startFakeNode())
  const nodes = [{ name: 'a', rpc: node.rpc }]
  const memory = createSharedLimits({ threads: 3 })
  const start = async (thread: number) =>
    opening.use(
      await startGateway(nodes, undefined, {
        limits: openSharedLimits(memory, thread),
        bundle: { failuresMax: FAILURES_MAX },
      }),
    )
  const [first, second] = [await start(1), await start(2)]
  const opened = opening.move()
  return { first, second, main: openSharedLimits(memory, 0), [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

test('limits that need no token hold over all threads of a gateway, and for each of them', async () => {
  await using pair = await startPair()
  const { first, second, main } = pair

  const statusOf = async (url: string, token?: string) => {
    const response = await fetch(url, { headers: token === undefined ? {} : { 'x-token': token } })
    await response.arrayBuffer()
    return response.status
  }
  const many = async (count: number, url: string, token?: string) => {
    const statuses = new Set<number>()
    for (let at = 0; at < count; at++) statuses.add(await statusOf(url, token))
    return [...statuses]
  }
  const drain = (bucket: keyof typeof main.buckets, key: string) => {
    const stripe = main.buckets[bucket].lock(key)
    const row = main.buckets[bucket].find(stripe)
    main.buckets[bucket].unlock(stripe)
    assert.ok(row !== 0, `${bucket} has a bucket of ${key}`)
    // The level; a refill of a second does not bring it back.
    main.buckets[bucket].values[row + 1] = -1e12
  }
  const { token, id } = await first.subscribe({})

  // Each is used at the first gateway, emptied, and refused at the second.
  assert.deepEqual(await many(1, `${first.url}/health`), [200])
  drain('health', '127.0.0.1')
  assert.deepEqual(await many(1, `${second.url}/health`), [429])
  assert.deepEqual(await many(1, `${first.url}/nothing`), [404])
  drain('open', '127.0.0.1')
  assert.deepEqual(await many(1, `${second.url}/nothing`), [429])
  assert.deepEqual(await many(1, `${first.url}/docs/nothing`), [404])
  drain('documents', '127.0.0.1')
  assert.deepEqual(await many(1, `${second.url}/docs/nothing`), [429])
  assert.deepEqual(await many(1, `${first.url}/v1/whoami`, token), [200])
  drain('pages', id)
  assert.deepEqual(await many(1, `${first.url}/v1/whoami`, token), [429])

  const call = async (address: string) => {
    const session = connectHttp2(`http://${address}`)
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const onFields = (fields: Record<string, unknown>) => {
      if (fields['grpc-status'] !== undefined) resolve(fields['grpc-message'] as string | undefined)
    }
    stream.on('response', onFields).on('trailers', onFields)
    stream.end(Buffer.from([0, 0, 0, 0, 0]))
    const message = await promise
    session.destroy()
    return message
  }
  assert.equal(await call(first.grpc), undefined)
  drain('grpcHealth', '127.0.0.1')
  assert.match((await call(second.grpc)) ?? '', /healthPerSecond/)

  // Refused tokens: the last of 21 is delayed, and its connection closed.
  for (let at = 0; at < FAILURES_MAX; at++)
    assert.equal(await statusOf(`${at % 2 === 0 ? first.url : second.url}/v1/whoami`, `slc_no${at}`), 401)
  const late = await fetch(`${second.url}/v1/whoami`, { headers: { 'x-token': 'slc_no' } })
  assert.deepEqual([late.status, late.headers.get('connection')], [401, 'close'])
})

test('connections and calls of all threads are counted together, and connections of a dead one are reclaimed', async () => {
  await using pair = await startPair()
  const { first, second, main } = pair
  const open = (server: 'rpc' | 'ws' | 'grpc') => main.connections[server].open.total
  const { token } = await second.subscribe({})
  const session = connectHttp2(`http://${second.grpc}`)
  const start = (path: string) =>
    session
      .request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
        'x-token': token,
      })
      .on('error', () => {})
  start('/grpc.health.v1.Health/Watch')
  start('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')
  const { watches, reflections } = main.held
  await until('both calls are counted', () => watches.of('127.0.0.1') === 1 && reflections.total === 1)
  session.destroy()
  await until('and no more', () => watches.total + reflections.total === 0 && open('grpc') === 0)
  const sockets: Socket[] = []
  for (const { bundle } of [first, second])
    for (const { port } of [bundle.rpc, bundle.ws, bundle.grpc]) sockets.push(connect(port, '127.0.0.1'))
  await until('all are counted', () => (['rpc', 'ws', 'grpc'] as const).every((server) => open(server) === 2))
  main.reclaim(2)
  assert.deepEqual([open('rpc'), open('ws'), open('grpc')], [1, 1, 1])
  for (const socket of sockets) socket.destroy()
})
