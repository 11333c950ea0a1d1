import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FakeResponse, startFakeNode } from '../../test/faults/fake-node.ts'
import { startFaultProxy } from '../../test/faults/fault-proxy.ts'
import { rpcBody, startRig, textOf } from '../../test/faults/upstreams-rig.ts'
import { createSeededRandom } from '../core/random.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { upstreamRequest } from './http-call.ts'
import { parseUpstreamsOptions, type UpstreamsOptionsInput } from './options.ts'
import { createClientView } from './pool/pool.ts'
import type { UpstreamResponse } from './response.ts'
import { startUpstreams } from './service.ts'

const GOOD = '{"context":{"slot":1000},"value":18446744073709551615}'

/** Two nodes on real time; probing is slow so that only the calls of a test count. */
async function twoNodes(options: UpstreamsOptionsInput = {}) {
  const stack = new AsyncDisposableStack()
  const a = stack.use(await startFakeNode())
  const b = stack.use(await startFakeNode())
  const nodes = [
    { name: 'a', rpc: a.rpc },
    { name: 'b', rpc: b.rpc },
  ]
  const rig = stack.use(await startRig({ clock: systemClock, nodes, ...options, health: { probeMs: 60_000 } }))
  await until('both are known', () => rig.upstreams.status().every(({ slot }) => slot === 1000))
  return { a, b, ...rig, shared: rig.upstreams.shared, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('passes the bytes of the node unchanged, and sends the node only the call and its own credential', async () => {
  await using node = await startFakeNode()
  node.respond = () => ({ result: GOOD })
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'a', rpc: `${node.rpc}/some/path`, credential: 'env:KEY', credentialHeader: 'authorization' }],
    env: { KEY: 'canary-of-the-node' },
  })
  const outcome = await rig.upstreams.shared.forwardAsync(
    upstreamRequest('getBalance', rpcBody('getBalance', '[ "x" ]')),
  )
  assert.ok(outcome.kind === 'responded')
  assert.equal(outcome.body.toString(), `{"jsonrpc":"2.0","result":${GOOD},"id":7}\n`)
  assert.deepEqual([outcome.status, outcome.nodeName], [200, 'a'])
  const [seen] = node.calls
  assert.equal(seen?.url, '/some/path')
  assert.equal(seen?.body, rpcBody('getBalance', '[ "x" ]').toString())
  assert.deepEqual(Object.keys(seen?.headers ?? {}).toSorted(), [
    'authorization',
    'content-length',
    'content-type',
    'host',
  ])
  assert.equal(seen?.headers['authorization'], 'Bearer canary-of-the-node')
  const message = [...rig.log, JSON.stringify(rig.upstreams.status()), await rig.registry.text()].join('\n')
  assert.ok(!message.includes('canary') && !message.includes(String(node.ports.rpc)))
})

describe('retries on a second node', () => {
  const faults: [name: string, response: FakeResponse, read: 'retried' | 'returned'][] = [
    ['a reset', 'reset', 'retried'],
    ['HTTP 503', { status: 503, body: '<html>down' }, 'retried'],
    ['HTTP 429', { status: 429, body: 'slow down' }, 'retried'],
    ['HTTP 401', { status: 401, body: 'who are you' }, 'retried'],
    ['a redirect', { status: 307, body: '', headers: { location: 'http://127.0.0.1:1/' } }, 'retried'],
    ['a page instead of JSON', { status: 200, body: '<html>sorry' }, 'retried'],
    ['-32004', { error: '{"code":-32004,"message":"Block not available for slot 5"}' }, 'retried'],
    [
      '-32005',
      { error: '{"code":-32005,"message":"Node is behind by 42 slots","data":{"numSlotsBehind":42}}' },
      'retried',
    ],
    ['-32014', { error: '{"code":-32014,"message":"x"}' }, 'retried'],
    ['-32016', { error: '{"code":-32016,"message":"x","data":{"contextSlot":1}}' }, 'retried'],
    ['-32019', { error: '{"code":-32019,"message":"x"}' }, 'retried'],
    ['-32002', { error: '{"code":-32002,"message":"Transaction simulation failed"}' }, 'returned'],
    ['-32602', { error: '{"code":-32602,"message":"Invalid param: WrongSize"}' }, 'returned'],
    ['-32601', { error: '{"code":-32601,"message":"Method not found"}' }, 'returned'],
    [
      '-32601 with HTTP 404',
      { status: 404, body: '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}' },
      'returned',
    ],
    ['HTTP 413 about the request', { status: 413, body: 'too large' }, 'returned'],
    ['HTTP 400 without a JSON-RPC response', { status: 400, body: 'bad request' }, 'retried'],
    ['HTTP 400 with another JSON', { status: 400, body: '{"error":"bad request"}' }, 'retried'],
    [
      'HTTP 400 with a JSON-RPC response',
      { status: 400, body: '{"jsonrpc":"2.0","error":{"code":-32602,"message":"x"},"id":1}' },
      'returned',
    ],
  ]
  for (const [name, response, read] of faults) {
    test(`${name}: a read is ${read}, a write never repeated`, async () => {
      await using on = await twoNodes()
      for (const kind of ['read', 'write'] as const) {
        on.a.calls.length = 0
        on.b.calls.length = 0
        let isFirst = true
        const script = () => {
          if (!isFirst) return { result: GOOD }
          isFirst = false
          return response
        }
        on.a.respond = script
        on.b.respond = script
        const method = kind === 'read' ? 'getBalance' : 'sendTransaction'
        const outcome = await on.shared.forwardAsync(upstreamRequest(method, rpcBody(method)))
        const asked = on.a.calls.length + on.b.calls.length
        if (kind === 'read' && read === 'retried') {
          assert.ok(textOf(outcome).includes('18446744073709551615'), textOf(outcome))
          assert.deepEqual([on.a.calls.length, on.b.calls.length], [1, 1])
        } else {
          assert.equal(asked, 1)
          assert.ok(!textOf(outcome).includes('18446744073709551615'))
          if (typeof response === 'object' && 'error' in response) assert.ok(textOf(outcome).includes(response.error))
        }
      }
    })
  }

  test('getAgGenesisCert: a certificate, null and -32601 are returned, and count for the health of the node', async () => {
    await using on = await twoNodes()
    const notFound = '{"code":-32601,"message":"Method not found"}'
    const responses: [FakeResponse, string][] = [
      [{ result: '{"slot":18446744073709551615,"blockId":"x"}' }, '"slot":18446744073709551615'],
      [{ result: 'null' }, '"result":null'],
      [{ error: notFound }, notFound],
      [{ status: 404, body: `{"jsonrpc":"2.0","error":${notFound},"id":1}` }, notFound],
    ]
    const request = upstreamRequest('getAgGenesisCert', rpcBody('getAgGenesisCert'))
    assert.equal(request.kind, 'read')
    for (const [response, expected] of responses) {
      on.a.respond = () => response
      on.b.respond = () => response
      // More than the breaker needs to open if these were failures.
      for (let call = 0; call < 50; call++) {
        const before = on.a.calls.length + on.b.calls.length
        const outcome = await on.shared.forwardAsync(request)
        assert.ok(outcome.kind === 'responded' && textOf(outcome).includes(expected), textOf(outcome))
        assert.equal(on.a.calls.length + on.b.calls.length - before, 1)
      }
    }
    const calls = (upstream: string, outcome: string) =>
      on.registry.value('sluice_upstreams_calls_total', { upstream, outcome }) ?? 0
    assert.deepEqual([calls('a', 'failed'), calls('b', 'failed')], [0, 0])
    assert.equal(calls('a', 'responded') + calls('b', 'responded'), 200)
  })

  test('an unknown method counts as a write', async () => {
    await using on = await twoNodes()
    on.a.respond = () => 'reset'
    on.b.respond = () => 'reset'
    const outcome = await on.shared.forwardAsync(upstreamRequest('getSomethingNew', rpcBody('getSomethingNew')))
    assert.deepEqual([outcome.kind, on.a.calls.length + on.b.calls.length], ['failed-maybe-sent', 1])
  })

  test('does not pass on a response about the gateway itself', async () => {
    await using on = await twoNodes()
    const outcomes: UpstreamResponse[] = []
    for (const status of [401, 403, 404, 429, 302, 400, 415, 413, 500, 502]) {
      const script = () => ({ status, body: 'secret words of a proxy' })
      on.a.respond = script
      on.b.respond = script
      outcomes.push(await on.shared.forwardAsync(upstreamRequest('sendTransaction', rpcBody('sendTransaction'))))
      // Good calls in between keep the breakers closed.
      on.a.respond = () => ({ result: '1' })
      on.b.respond = () => ({ result: '1' })
      await Promise.all(
        [1, 2, 3, 4].map(() => on.shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))),
      )
    }
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      [
        ...Array.from({ length: 5 }, () => 'failed-not-sent'),
        ...['declined', 'declined', 'too-large', 'failed-maybe-sent', 'failed-maybe-sent'],
      ],
    )
    assert.ok(!JSON.stringify(outcomes).includes('secret words'))
  })

  test('a request that its nodes refuse for its content does not count against them', async () => {
    await using on = await twoNodes()
    for (const status of [400, 413, 415]) {
      on.a.respond = () => ({ status, body: 'no' })
      on.b.respond = () => ({ status, body: 'no' })
      // More than the breaker needs to open if these were failures.
      for (let call = 0; call < 30; call++) {
        await on.shared.forwardAsync(upstreamRequest('sendTransaction', rpcBody('sendTransaction')))
      }
    }
    assert.deepEqual(
      on.upstreams.status().map(({ state, recentFailures }) => [state, recentFailures]),
      [
        ['healthy', 0],
        ['healthy', 0],
      ],
    )
  })

  test('passes on a JSON-RPC error with HTTP 500 where no node has a better response', async () => {
    await using on = await twoNodes()
    const body = '{"jsonrpc":"2.0","error":{"code":-32603,"message":"x"},"id":7}'
    const script = () => ({ status: 500, body })
    on.a.respond = script
    on.b.respond = script
    assert.equal(textOf(await on.shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))), body)
    assert.deepEqual([on.a.calls.length, on.b.calls.length], [1, 1])
  })

  test('returns the first response where the second node has none', async () => {
    await using on = await twoNodes()
    let calls = 0
    const script = (): FakeResponse => {
      calls += 1
      return calls === 1 ? { error: '{"code":-32004,"message":"first"}' } : 'reset'
    }
    on.a.respond = script
    on.b.respond = script
    const outcome = await on.shared.forwardAsync(upstreamRequest('getBlock', rpcBody('getBlock')))
    assert.ok(textOf(outcome).includes('first'), textOf(outcome))
    assert.equal(calls, 2)
  })

  test('limits retries by the budget, and returns the first result without it', async () => {
    await using on = await twoNodes({ calls: { retryShare: 0 } })
    on.a.respond = () => 'reset'
    on.b.respond = () => ({ result: '1' })
    const outcomes = await Promise.all(
      Array.from({ length: 4 }, () => on.shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))),
    )
    assert.equal(on.a.calls.length + on.b.calls.length, 4)
    assert.ok(outcomes.some(({ kind }) => kind === 'failed-maybe-sent'))
    assert.equal(on.registry.value('sluice_upstreams_retries_refused_total'), on.a.calls.length)
  })
})

describe('slots', () => {
  test('uses the slot of responses, and never lets a client go back', async () => {
    await using on = await twoNodes()
    const view = createClientView()
    on.a.respond = () => ({ result: '{"context":{"slot":1020},"value":1}' })
    on.b.respond = () => ({ result: '{"context":{"slot":1000},"value":1}' })
    await until('the client has been at a', async () => {
      await on.shared.forwardAsync({ ...upstreamRequest('getBalance', rpcBody('getBalance')), view })
      return view.slot === 1020
    })
    assert.equal(on.shared.bestSlot, 1020)
    on.b.calls.length = 0
    for (let round = 0; round < 10; round++)
      await on.shared.forwardAsync({ ...upstreamRequest('getBalance', rpcBody('getBalance')), view })
    assert.equal(on.b.calls.length, 0)
    const other = createClientView()
    await Promise.all(
      Array.from({ length: 10 }, () =>
        on.shared.forwardAsync({ ...upstreamRequest('getBalance', rpcBody('getBalance')), view: other }),
      ),
    )
    assert.ok(on.b.calls.length > 0, 'a new client may go anywhere')
    // The only node left is behind: it serves all the same.
    on.upstreams.drain('a')
    const outcome = await on.shared.forwardAsync({ ...upstreamRequest('getBalance', rpcBody('getBalance')), view })
    assert.ok(outcome.kind === 'responded' && outcome.nodeName === 'b')
  })
})

describe('the operator', () => {
  test('sends no calls to a drained node, finishes those in flight, and uses it again after undrain', async () => {
    await using on = await twoNodes()
    assert.equal(on.upstreams.drain('a'), true)
    assert.equal(on.upstreams.drain('nobody'), false)
    for (let round = 0; round < 6; round++)
      await on.shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
    assert.deepEqual([on.a.calls.length, on.b.calls.length], [0, 6])
    assert.deepEqual(
      on.upstreams.status().map(({ name, state }) => [name, state]),
      [
        ['a', 'drained'],
        ['b', 'healthy'],
      ],
    )
    assert.equal(on.registry.value('sluice_upstreams_state', { upstream: 'a', state: 'drained' }), 1)
    on.upstreams.drain('b')
    assert.deepEqual(await on.shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance'))), {
      kind: 'no-upstream',
      isSent: false,
    })
    assert.equal(on.shared.isAvailable, false)
    on.upstreams.undrain('a')
    assert.equal((await on.shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))).kind, 'responded')
  })

  test('does not connect to loopback without allowPrivate, and starts all the same', async () => {
    await using node = await startFakeNode()
    await using rig = await startRig({
      clock: systemClock,
      allowPrivate: false,
      nodes: [{ name: 'a', rpc: node.rpc, ws: node.ws, grpc: node.grpc }],
    })
    const outcome = await rig.upstreams.shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
    assert.ok(outcome.kind === 'failed-not-sent' && outcome.message.includes('allowPrivate'))
    assert.deepEqual(await rig.upstreams.shared.grpc.open('/a/b', {}), { ok: false, reason: 'no-upstream' })
    assert.deepEqual([node.requests.length, node.handshakes.length], [0, 0])
  })
})

test('retries a read on a stale idle connection, with a single node too', async () => {
  await using node = await startFakeNode()
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: node.ports.rpc } })
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'a', rpc: `http://127.0.0.1:${proxy.port}` }],
    health: { probeMs: 60_000 },
  })
  const shared = rig.upstreams.shared
  assert.equal((await shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))).kind, 'responded')
  let isFirst = true
  node.respond = () => {
    if (!isFirst) return undefined
    isFirst = false
    return 'reset'
  }
  assert.equal((await shared.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))).kind, 'responded')
  assert.equal(rig.registry.value('sluice_upstreams_retries_total', { failure: 'stale' }), 1)
})

test('reports degraded without an available node, and recovered afterwards', async () => {
  const reasons: string[] = []
  await using node = await startFakeNode()
  await using upstreams = await startUpstreams(
    parseUpstreamsOptions({ allowPrivate: true, nodes: [{ name: 'a', rpc: node.rpc }] }),
    {
      log: silentLogger,
      clock: systemClock,
      random: createSeededRandom(1),
      registry: createMetricsRegistry(),
      env: {},
      lifecycle: {
        degraded: (part, reason) => reasons.push(`${part}: ${reason}`),
        recovered: () => reasons.push('well'),
      },
    },
  )
  await until('it is known', () => reasons.at(-1) === 'well')
  upstreams.drain('a')
  assert.equal(reasons.at(-1), 'upstreams: no node can take calls')
  upstreams.undrain('a')
  assert.equal(reasons.at(-1), 'well')
})

test('streams a large response', async () => {
  await using on = await twoNodes()
  const big = `"${'x'.repeat(5_000_000)}"`
  on.a.respond = () => ({ result: big })
  on.b.respond = () => ({ result: big })
  const outcome = await on.shared.forwardAsync(upstreamRequest('getProgramAccounts', rpcBody('getProgramAccounts')))
  assert.ok(outcome.kind === 'responded' && outcome.rest !== undefined)
  let bytes = outcome.body.length
  const ended = Promise.withResolvers<string>()
  outcome.rest.start({
    onData: (chunk) => void (bytes += chunk.length),
    onEnd: () => ended.resolve('end'),
    onFail: () => ended.resolve('failed'),
  })
  assert.equal(await ended.promise, 'end')
  assert.equal(bytes, big.length + '{"jsonrpc":"2.0","result":,"id":7}\n'.length)
  await until('nothing is in flight', () => on.upstreams.status().every(({ callsInFlight }) => callsInFlight === 0))
})

test('releases the node of an aborted call', async () => {
  await using on = await twoNodes()
  on.a.respond = () => 'hang'
  on.b.respond = () => 'hang'
  const outcome = Promise.withResolvers<UpstreamResponse>()
  const call = on.shared.forward(upstreamRequest('getBalance', rpcBody('getBalance')), outcome.resolve)
  await until('the call is sent', () => on.a.calls.length + on.b.calls.length === 1)
  call.abort()
  assert.equal((await outcome.promise).kind, 'failed-maybe-sent')
  assert.ok(
    on.upstreams.status().every(({ callsInFlight, recentFailures }) => callsInFlight === 0 && recentFailures === 0),
  )
  assert.equal(on.a.calls.length + on.b.calls.length, 1)
})
