import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lagLimitsOf } from './lag-limits.ts'
import { parseUpstreamsOptions, type UpstreamsOptionsInput } from './options.ts'

const node = { name: 'fra-1', rpc: 'https://node.example' }
const withNode = (more: object): UpstreamsOptionsInput => ({ nodes: [{ ...node, ...more }] })

test('has the defaults of the reference', () => {
  const { health, breaker, calls, allowPrivate } = parseUpstreamsOptions()
  assert.equal(allowPrivate, false)
  assert.deepEqual(lagLimitsOf(health), { lagMsMax: 10_000, shredLagMsMax: 40_000 })
  assert.equal(breaker.failuresInRow, 5)
  assert.deepEqual(calls, { deadlineMs: 10_000, heavyDeadlineMs: 60_000, retryShare: 0.1 })
})

test('a lag limit in slots is a time: that number of slots of 400 ms', () => {
  const { health } = parseUpstreamsOptions({ health: { lagSlotsMax: 50, shredLagSlotsMax: 10 } })
  assert.deepEqual(lagLimitsOf(health), { lagMsMax: 20_000, shredLagMsMax: 4000 })
  const timed = parseUpstreamsOptions({ health: { lagMsMax: 3000, shredLagMsMax: 7000 } })
  assert.deepEqual(lagLimitsOf(timed.health), { lagMsMax: 3000, shredLagMsMax: 7000 })
})

test('accepts a node with any one endpoint', () => {
  const options = parseUpstreamsOptions(
    withNode({ ws: 'wss://node.example/pubsub', grpc: 'http://10.0.0.1:10000', credential: 'env:NODE_KEY', weight: 3 }),
  )
  assert.equal(options.nodes[0]?.credentialHeader, 'x-token')
})

test('refuses invalid options, and does not repeat a literal secret', () => {
  for (const more of [
    { name: 'Fra 1' },
    { name: 'other' },
    { rpc: 'ws://node.example' },
    { rpc: 'https://user:pass@node.example' },
    { rpc: 'https://node.example/?api-key=1' },
    { rpc: undefined },
    { ws: 'https://node.example' },
    { credential: 'slc_literal_secret' },
    { credentialHeader: 'content-length' },
    { credentialHeader: 'bad header' },
    { weight: 0 },
    { unknown: 1 },
  ]) {
    assert.throws(
      () => parseUpstreamsOptions(withNode(more)),
      (error: Error) => !error.message.includes('literal_secret'),
      JSON.stringify(more),
    )
  }
  assert.throws(() => parseUpstreamsOptions({ nodes: [node, node] }), /upstreams\.nodes\[0\] is named/)
})

test('a first delay of the breaker above the largest one is refused with its key, also against the default', () => {
  for (const breaker of [{ firstMs: 200, maxMs: 100 }, { firstMs: 2000 }, { maxMs: 50 }])
    assert.throws(() => parseUpstreamsOptions({ breaker }), /must not be above upstreams\.breaker\.maxMs/)
  assert.equal(parseUpstreamsOptions({ breaker: { firstMs: 1500 } }).breaker.firstMs, 1500)
})
