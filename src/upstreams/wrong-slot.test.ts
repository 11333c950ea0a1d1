import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFakeNode } from '../../test/faults/fake-node.ts'
import { rpcBody, startRig } from '../../test/faults/upstreams-rig.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { upstreamRequest } from './http-call.ts'
import { createClientView } from './pool/pool.ts'

/** Three nodes, of which `wrong` is the first; returns how many of twelve calls each has got. */
async function callsAt(wrong: Parameters<typeof startFakeNode>[0] | 'error', state: string) {
  await using stack = new AsyncDisposableStack()
  const slots = [wrong === 'error' ? 0 : wrong, 1000, 1001]
  const nodes = await Promise.all(slots.map((slot) => startFakeNode(slot)))
  for (const node of nodes) stack.use(node)
  const [first] = nodes
  if (wrong === 'error' && first) first.fault = { error: '{"code":-32601,"message":"Method not found"}' }
  const named = nodes.map(({ rpc }, at) => ({ name: `n${at}`, rpc }))
  const rig = stack.use(await startRig({ clock: systemClock, nodes: named }))
  await until('it is out of rotation', () => rig.upstreams.status()[0]?.state === state)
  await until('the others are known', () =>
    rig.upstreams
      .status()
      .slice(1)
      .every(({ slot }) => slot >= 1000),
  )
  const upstream = rig.upstreams.shared
  // A client that has seen the newest slot of the chain, and one that has seen none.
  for (const view of [{ ...createClientView(), slot: 1001 }, createClientView()]) {
    const call = upstreamRequest('getBalance', rpcBody('getBalance'), view)
    for (let at = 0; at < 6; at++) await upstream.forwardAsync(call)
  }
  return { best: upstream.bestSlot, calls: nodes.map(({ calls }) => calls.length) }
}

test('a node that reports a slot far above those of the others gets no calls', async () => {
  const { best, calls } = await callsAt(1_000_000_000, 'lagging')
  assert.equal(best, 1001)
  assert.equal(calls[0], 0)
  assert.ok((calls[1] ?? 0) > 0 && (calls[2] ?? 0) > 0)
})

test('a node that responds to every probe with an error gets no calls while the slot of another is known', async () => {
  const { calls } = await callsAt('error', 'lagging')
  assert.equal(calls[0], 0)
})
