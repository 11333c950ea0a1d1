import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFakeNode } from '../../test/faults/fake-node.ts'
import { rpcBody, startRig } from '../../test/faults/upstreams-rig.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { upstreamRequest } from './http-call.ts'

/** One node on real time; probing is slow so that only the calls of a test count. */
async function oneNode() {
  const stack = new AsyncDisposableStack()
  const node = stack.use(await startFakeNode())
  const nodes = [{ name: 'a', rpc: node.rpc }]
  const rig = stack.use(await startRig({ clock: systemClock, nodes, health: { probeMs: 60_000 } }))
  const shared = rig.upstreams.of(undefined)
  await until('it is known', () => shared.bestSlot === 1000)
  const send = () => shared.forwardAsync(upstreamRequest('sendTransaction', rpcBody('sendTransaction')))
  const breaker = () => rig.upstreams.status()[0]?.breaker
  return { node, send, breaker, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('a node that responds to probes is not taken from all by calls that it refuses', async () => {
  await using on = await oneNode()
  for (const status of [401, 403, 404, 405, 429, 500, 503, 200]) {
    on.node.respond = () => ({ status, body: 'no' })
    for (let call = 0; call < 30; call++) assert.notEqual((await on.send()).kind, 'no-upstream')
    assert.equal(on.breaker(), 'closed', String(status))
  }
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
