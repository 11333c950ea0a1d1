import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFakeNode } from '../../test/faults/fake-node.ts'
import { rpcBody, startRig } from '../../test/faults/upstreams-rig.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { upstreamRequest } from './http-call.ts'
import type { UpstreamResponse } from './response.ts'

const LARGE = `"${'x'.repeat(200_000)}"`

test('a subscription that reads slowly takes a node from nobody, neither its connections nor its place in rotation', async () => {
  await using node = await startFakeNode()
  node.respond = (method) => (method === 'getProgramAccounts' ? { result: LARGE } : undefined)
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'a', rpc: node.rpc }],
    connections: { rpcPerNodeMax: 8, rpcWaitingMax: 16 },
    calls: { deadlineMs: 300, heavyDeadlineMs: 300 },
  })
  const shared = rig.upstreams.shared
  const call = (method: string, subscription: string) =>
    shared.forwardAsync({ ...upstreamRequest(method, rpcBody(method)), subscription })
  await until('the node is known', () => shared.bestSlot === 1000)
  const slow: UpstreamResponse[] = []
  for (let at = 0; at < 30; at++) void call('getProgramAccounts', 'slow').then((response) => slow.push(response))
  await until('all have an outcome', () => slow.length === 30)
  const counts = Map.groupBy(slow, ({ kind }) => kind)
  assert.deepEqual(
    ['responded', 'timeout', 'over-share'].map((kind) => counts.get(kind as 'timeout')?.length),
    [6, 6, 18],
  )
  assert.ok(slow.every((response) => response.kind === 'responded' || !response.isSent))
  const [status] = rig.upstreams.status()
  assert.deepEqual([status?.state, status?.recentFailures], ['healthy', 0])
  for (let at = 0; at < 20; at++) assert.equal((await call('getBalance', 'quick')).kind, 'responded')
  for (const response of slow) if (response.kind === 'responded') response.rest?.abort()
})
