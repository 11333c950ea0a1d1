import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addNode, assignNode } from '../../src/access/provisioning/nodes.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { callGateway } from '../faults/gateway-rig.ts'
import { startGateway } from '../support/gateway/start.ts'

test('T17: follows no redirect of an upstream, and its address and credential are in no response, log or metric', async () => {
  await using target = await startFakeNode()
  await using node = await startFakeNode()
  for (const status of [301, 302, 303, 307, 308]) {
    node.respond = () => ({ status, body: '', headers: { location: `${target.rpc}/canary-path` } })
    await using gateway = await startGateway([{ name: 'a', rpc: node.rpc }])
    const { token } = await gateway.subscribe({})
    const { text } = await callGateway(gateway.url, token, { method: 'getBalance' })
    assert.match(text, /"code":-32503/)
    const seen = text + gateway.log() + (await gateway.registry.text())
    for (const secret of [target.rpc, node.rpc, String(node.ports.rpc), 'canary-path']) {
      assert.ok(!seen.includes(secret), `${status}: ${secret}`)
    }
  }
  assert.deepEqual(target.requests, [])
})

test('T17: never connects to link-local and metadata addresses, and to loopback only where the operator allows it', async () => {
  await using node = await startFakeNode()
  const port = node.ports.rpc
  const forbidden = [
    'http://169.254.169.254',
    'http://[fd00:ec2::254]',
    'http://[fe80::1]',
    `http://[::ffff:169.254.169.254]:${port}`,
  ]
  for (const rpc of forbidden) {
    await using gateway = await startGateway([{ name: 'a', rpc }])
    const { token } = await gateway.subscribe({})
    const { status } = await callGateway(gateway.url, token, { method: 'getBalance' })
    assert.equal(status, 503, rpc)
    await until('the reason is reported to the operator', async () => {
      await callGateway(gateway.url, token, { method: 'getBalance' })
      const [known] = gateway.upstreams.status()
      return /never connected to|metadata service/.test(known?.reason ?? '')
    })
    assert.ok(!(await gateway.registry.text()).includes('169.254'), rpc)
  }
  for (const allowPrivate of [false, true]) {
    const before = node.requests.length
    await using gateway = await startGateway([{ name: 'a', rpc: node.rpc, allowPrivate }])
    const { token } = await gateway.subscribe({})
    const { status } = await callGateway(gateway.url, token, { method: 'getBalance' })
    assert.equal(status, allowPrivate ? 200 : 503)
    assert.equal(node.requests.length > before, allowPrivate)
  }
})

test('T17: applies the same to a dedicated node, and serves its owner from no other node', async () => {
  await using shared = await startFakeNode()
  await using gateway = await startGateway([{ name: 'a', rpc: shared.rpc }])
  const { token, id } = await gateway.subscribe({ products: ['bundle', 'dedicated-node'] })
  for (const rpc of [
    'ftp://10.0.0.1',
    'file:///etc/passwd',
    'http://user:secret@10.0.0.1',
    'gopher://10.0.0.1',
    'http://10.0.0.1/?key=1',
  ]) {
    await assert.rejects(addNode(gateway.on, { name: 'ded', rpc, ws: '', grpc: '', credential: null }), rpc)
  }
  const rpc = 'http://169.254.169.254'
  await addNode(gateway.on, { name: 'ded', rpc, ws: '', grpc: '', credential: null })
  await assignNode(gateway.on, { node: 'ded', subscription: id })
  const nodes = [{ name: 'ded', subscriptionId: id, rpc, ws: '', grpc: '', credential: null }]
  await gateway.upstreams.setDedicated(nodes)
  const user = { subscriptionId: id, mayUseShared: true }
  await until('it is in use', () => !gateway.upstreams.usesShared(user))
  const before = shared.calls.length
  assert.equal((await callGateway(gateway.url, token, { method: 'getBalance' })).status, 503)
  assert.equal(shared.calls.length, before)
})
