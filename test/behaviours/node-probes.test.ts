import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { rawPost } from '../support/gateway/raw-post.ts'
import { startServedGateway } from '../support/gateway/served.ts'

const PROBES = 6
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'
/** On connections of their own: all on two of three threads happens once in 10,000 runs. */
const CALLS = 24

test('a node is probed by one thread of the process, and all threads follow what it finds', async (t) => {
  await using node = await startFakeNode()
  await using other = await startFakeNode()
  const nodes = [
    { name: 'a', rpc: node.rpc },
    { name: 'b', rpc: other.rpc },
  ]
  await using gateway = await startServedGateway(nodes, { workers: 3 })
  const probes = () => node.requests.filter(({ body }) => body.includes('"getSlot"')).length
  const before = probes()
  const fromMs = performance.now()
  await until('it is probed', () => probes() >= before + PROBES, 60_000)
  const tookMs = Math.round(performance.now() - fromMs)
  t.diagnostic(`${PROBES} probes in ${tookMs} ms`)
  // One each second. With one for each of five threads they would take a second and a half.
  assert.ok(tookMs > 3500, `${PROBES} probes in ${tookMs} ms`)

  const callMany = async () => {
    const sent = Array.from({ length: CALLS }, () => rawPost(gateway.url, gateway.token, CALL).response)
    for (const { status } of await Promise.all(sent)) assert.equal(status, 200)
  }
  const callsOf = ({ calls }: typeof node) => calls.filter(({ method }) => method === 'getBalance').length
  await callMany()
  assert.ok(callsOf(node) > 0 && callsOf(other) > 0, 'both are used')
  node.slot += 1000
  await until('no thread uses the node that lags', async () => {
    const used = callsOf(other)
    await callMany()
    return callsOf(other) === used
  })
})
