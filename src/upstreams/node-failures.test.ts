import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startFakeNode } from '../../test/faults/fake-node.ts'
import { rpcBody, startRig, textOf } from '../../test/faults/upstreams-rig.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { type UpstreamRequest, upstreamRequest } from './http-call.ts'
import type { UpstreamResponse } from './response.ts'

/** One node on real time; probing is slow so that only the calls of a test count. */
async function oneNode() {
  const stack = new AsyncDisposableStack()
  const node = stack.use(await startFakeNode())
  const nodes = [{ name: 'a', rpc: node.rpc }]
  const rig = stack.use(await startRig({ clock: systemClock, nodes, health: { probeMs: 60_000 } }))
  const shared = rig.upstreams.shared
  await until('it is known', () => shared.bestSlot === 1000)
  const send = () => shared.forwardAsync(upstreamRequest('sendTransaction', rpcBody('sendTransaction')))
  const breaker = () => rig.upstreams.status()[0]?.breaker
  return { node, send, breaker, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

describe('a response that is not the one a node owes', () => {
  const call = upstreamRequest('getBalance', rpcBody('getBalance'))
  const writes = upstreamRequest('sendTransaction', rpcBody('sendTransaction'))
  const refusal = '{"jsonrpc":"2.0","error":{"code":-32600,"message":"no batches here"},"id":null}'
  const cases: [name: string, request: UpstreamRequest, body: string, kind: UpstreamResponse['kind']][] = [
    ['a single call: nothing', call, '', 'failed-maybe-sent'],
    ['a single call: white space', call, ' \r\n\t', 'failed-maybe-sent'],
    ['a single call: text after white space', call, '\n down', 'failed-maybe-sent'],
    ['a single call: text after another byte below the space', call, '\u0001{}', 'failed-maybe-sent'],
    ['a single call: an error after white space', call, `\n ${refusal}`, 'responded'],
    [
      'a single call: a response of which only the head has come',
      call,
      `{"result":"${'x'.repeat(200_000)}"}`,
      'responded',
    ],
    ['a notification: nothing', { ...call, expects: 'nothing' }, '', 'responded'],
    ['a notification: text', { ...call, expects: 'nothing' }, 'down', 'failed-maybe-sent'],
    ['a batch: a single error', { ...call, expects: 'batch' }, refusal, 'declined'],
    [
      'a batch of writes: a single error that says it was not read',
      { ...writes, expects: 'batch' },
      refusal,
      'declined',
    ],
    [
      'a batch of writes: a single error that is none of JSON-RPC',
      { ...writes, expects: 'batch' },
      '{"message":"timeout"}',
      'failed-maybe-sent',
    ],
    [
      'a batch of writes: a single error that may have come after some of them',
      { ...writes, expects: 'batch' },
      refusal.replace('-32600', '-32603'),
      'failed-maybe-sent',
    ],
    ['a batch: an array', { ...call, expects: 'batch' }, `[${refusal}]`, 'responded'],
  ]
  for (const [name, request, body, kind] of cases) {
    test(name, async () => {
      await using a = await startFakeNode()
      await using rig = await startRig({ clock: systemClock, nodes: [{ name: 'a', rpc: a.rpc }] })
      a.respond = () => ({ status: 200, body, headers: { 'content-length': String(body.length) } })
      const response = await rig.upstreams.shared.forwardAsync(request)
      assert.equal(response.kind, kind)
      if (response.kind === 'responded') response.rest?.abort()
    })
  }

  test('a batch of reads that one node refuses with a single error is retried on another', async () => {
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    const nodes = [a, b].map(({ rpc }, at) => ({ name: String(at), rpc }))
    await using rig = await startRig({ clock: systemClock, nodes })
    a.respond = () => ({ status: 400, body: refusal })
    b.respond = () => ({ result: '7' })
    const body = Buffer.from(`[${rpcBody('getBalance').toString()}]`)
    for (let round = 0; round < 4; round++) {
      const response = await rig.upstreams.shared.forwardAsync({ ...call, body, expects: 'batch' })
      assert.match(textOf(response), /^\[.*"result":7/)
    }
    assert.ok(a.calls.length > 0)
  })
})

test('a node that responds to probes is not taken from all by calls that it refuses', async () => {
  await using on = await oneNode()
  for (const status of [401, 403, 404, 405, 429, 500, 503, 200]) {
    on.node.respond = () => ({ status, body: 'no' })
    for (let call = 0; call < 30; call++) assert.notEqual((await on.send()).kind, 'no-upstream')
    assert.equal(on.breaker(), 'closed', String(status))
  }
})

test('a node that responds to probes but refuses all calls is used last, by one customer too', async () => {
  await using a = await startFakeNode()
  await using b = await startFakeNode()
  const nodes = [a, b].map(({ rpc }, at) => ({ name: 'ab'.charAt(at), rpc }))
  await using rig = await startRig({ clock: systemClock, nodes })
  const shared = rig.upstreams.shared
  const stateOf = (name: string) => rig.upstreams.status().find((node) => node.name === name)
  await until('both are known', () => rig.upstreams.status().every(({ slot }) => slot === 1000))
  const send = () =>
    shared.forwardAsync({ ...upstreamRequest('sendTransaction', rpcBody('sendTransaction')), subscription: 'one' })
  a.respond = () => ({ status: 503, body: 'no' })
  const kinds: string[] = []
  for (let call = 0; call < 60; call++) kinds.push((await send()).kind)
  const failed = kinds.filter((kind) => kind !== 'responded').length
  assert.ok(failed >= 5 && failed <= 20, `${failed} of ${kinds.length} failed`)
  // Not failing: that a customer may have caused it wakes nobody.
  assert.deepEqual([stateOf('a')?.state, stateOf('a')?.breaker], ['healthy', 'closed'])
  assert.match(stateOf('a')?.reason ?? '', /^it fails many calls \(HTTP 503\), though its probes succeed$/)
  // Where all do, calls go to both again.
  b.respond = a.respond
  const before = a.calls.length
  for (let call = 0; call < 60; call++) assert.notEqual((await send()).kind, 'no-upstream')
  assert.ok(a.calls.length > before)
})

for (const [status, calls] of [
  [401, 1],
  [503, 5],
] as const) {
  test(`a node that responds to everything with ${status} is out of rotation after ${calls} calls`, async () => {
    await using on = await oneNode()
    on.node.fault = { status, body: 'no' }
    for (let call = 0; call < calls; call++) {
      assert.equal(on.breaker(), 'closed')
      await on.send()
    }
    await until('it is out', () => on.breaker() !== 'closed')
  })
}
