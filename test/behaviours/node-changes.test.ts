import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { callGateway } from '../faults/gateway-rig.ts'
import { FREE_PLAN, type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { openWsTestClient } from '../support/gateway/ws-client.ts'

const table = (nodes: readonly object[]) =>
  nodes
    .map(
      (node) =>
        `[[upstreams.nodes]]\n${Object.entries(node)
          .map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
          .join('')}`,
    )
    .join('\n')
const write = ({ configFile }: ServedGateway, nodes: readonly object[]) =>
  writeFileSync(configFile, `${table(nodes)}\n${FREE_PLAN}`)
const balance = ({ url, token }: ServedGateway) => callGateway(url, token, { method: 'getBalance' })
const nodesOf = async (on: ServedGateway) =>
  JSON.parse((await on.sluice('upstream', 'list', '-o', 'json')).stdout) as { name: string; state: string }[]

test('sluice reload and SIGHUP apply the nodes of the file; subscriptions move under their ids; an invalid file changes nothing', async () => {
  await using a = await startFakeNode()
  await using b = await startFakeNode()
  const nodeA = { name: 'a', rpc: a.rpc, ws: a.ws }
  const nodeB = { name: 'b', rpc: b.rpc, ws: b.ws }
  await using on = await startServedGateway([nodeA])
  assert.equal((await balance(on)).status, 200)
  const client = await openWsTestClient(on.ws, { 'x-token': on.token })
  const { result: id } = await client.call('rootSubscribe')

  write(on, [nodeB])
  const reloaded = await on.sluice('reload')
  assert.equal(reloaded.code, 0, reloaded.stderr)
  assert.match(reloaded.stderr, /node b is added/)
  assert.match(reloaded.stderr, /node a is removed/)
  assert.doesNotMatch(reloaded.stderr, /restart/)
  assert.deepEqual(
    (await nodesOf(on)).map(({ name }) => name),
    ['b'],
  )
  const before = a.calls.length
  assert.equal((await balance(on)).status, 200)
  assert.equal(a.calls.length, before)
  await until('the subscription is at b', () =>
    [...b.subscriptions.values()].some(({ method }) => method === 'rootSubscribe'),
  )
  b.notify('rootSubscribe', '7')
  await until('it notifies under the old id', () => client.reported.has(Number(id)))

  write(on, [nodeA, { ...nodeB, weight: 3 }])
  on.running.child.kill('SIGHUP')
  await until('SIGHUP has added a', async () => (await nodesOf(on)).length === 2)

  for (const [nodes, message] of [
    [[{ ...nodeA, rpc: `${a.rpc}/?api-key=canary` }], /by reference: "env:NAME" or "file:PATH"/],
    [[{ ...nodeA, credential: 'env:NOT_THERE' }], /NOT_THERE is not set/],
  ] as const) {
    write(on, nodes)
    const refused = await on.sluice('reload')
    assert.equal(refused.code, 78, refused.stderr)
    assert.match(refused.stderr, message)
    assert.match(refused.stderr, /the present configuration stays in effect/)
    assert.doesNotMatch(refused.stderr, /canary/)
    assert.deepEqual(
      (await nodesOf(on)).map(({ name }) => name),
      ['a', 'b'],
    )
  }
  client.socket.terminate()
})

test('an address in a file is a secret: used with its query, shown nowhere, and read again by a reload', async () => {
  await using a = await startFakeNode()
  await using b = await startFakeNode()
  const env = { NODE_WS: `${a.ws}/?api-key=canary-ws` }
  await using on = await startServedGateway([{ name: 'a', rpc: 'env:NODE_RPC', ws: 'env:NODE_WS' }], {
    env: { ...env, NODE_RPC: `${a.rpc}/v1?api-key=canary-rpc` },
  })
  assert.equal((await balance(on)).status, 200)
  assert.equal(a.calls[0]?.url, '/v1?api-key=canary-rpc')
  await until('the WebSocket is open', () => a.handshakeUrls.length > 0)
  assert.deepEqual(new Set(a.handshakeUrls), new Set(['/?api-key=canary-ws']))

  const file = join(dirname(on.configFile), 'node-rpc')
  writeFileSync(file, `${b.rpc}/?api-key=canary-file\n`, { mode: 0o600 })
  write(on, [{ name: 'b', rpc: 'file:node-rpc' }])
  assert.match((await on.sluice('reload')).stderr, /node b is added/)
  assert.equal((await balance(on)).status, 200)
  const usedUrl = () => b.calls.findLast(({ method }) => method === 'getBalance')?.url
  assert.equal(usedUrl(), '/?api-key=canary-file')
  writeFileSync(file, `${b.rpc}/?api-key=canary-next\n`, { mode: 0o600 })
  assert.match((await on.sluice('reload')).stderr, /node b has its new addresses/)
  assert.equal((await balance(on)).status, 200)
  assert.equal(usedUrl(), '/?api-key=canary-next')
  chmodSync(file, 0o644)
  assert.equal((await on.sluice('reload')).code, 78, 'a secret file that others can read')

  await a[Symbol.asyncDispose]()
  await b[Symbol.asyncDispose]()
  await until('the loss is seen', async () => {
    await balance(on)
    return (await nodesOf(on)).some(({ state }) => state === 'failing')
  })
  const title = readFileSync(`/proc/${on.running.child.pid}/cmdline`, 'utf8')
  const metrics = await (await fetch(`${on.metrics}/metrics`)).text()
  const commands = await Promise.all(
    [['status'], ['upstream', 'list'], ['config', 'show']].map((words) => on.sluice(...words)),
  )
  const shown = [on.running.stdout(), on.running.stderr(), title, metrics, ...commands.map(({ stdout }) => stdout)]
  assert.ok(!shown.join('\n').includes('canary'))
})

test('dedicated nodes change by command; one that is down shows in status, metrics and the list', async () => {
  await using shared = await startFakeNode()
  await using first = await startFakeNode()
  await using second = await startFakeNode()
  await using on = await startServedGateway([{ name: 'shared', rpc: shared.rpc }], { env: { DED_KEY: 'key-1' } })
  const run = async (...words: string[]) => {
    const done = await on.sluice(...words)
    assert.equal(done.code, 0, done.stderr)
    return done
  }
  const made = await run(
    'sub',
    'create',
    'globex',
    '--customer',
    'acme',
    '--products',
    'dedicated-node',
    '--print-token',
  )
  assert.match(made.stderr, /refused as not-assigned until a node is assigned: .*sluice node assign NODE globex/)
  const token = /slc_[0-9A-Za-z]{38}/.exec(made.stdout)?.[0] ?? ''
  const call = () => callGateway(on.url, token, { method: 'getBalance' })

  await run('node', 'add', 'ded-1', '--rpc', first.rpc)
  await run('node', 'assign', 'ded-1', 'globex')
  await until('it is served', async () => (await call()).status === 200)
  await run('node', 'set', 'ded-1', '--rpc', second.rpc, '--credential', 'env:DED_KEY')
  await until('the new address is used', async () => (await call()).status === 200 && second.calls.length > 0)
  assert.equal(second.calls[0]?.headers['x-token'], 'key-1')

  await second[Symbol.asyncDispose]()
  await until('status names it', async () => /dedicated nodes: failing: ded-1/.test((await on.sluice('status')).stdout))
  const metrics = await (await fetch(`${on.metrics}/metrics`)).text()
  assert.match(metrics, /^sluice_upstreams_dedicated_failing 1$/m)
  assert.match(metrics, /^sluice_upstreams_dedicated_nodes 1$/m)
  assert.equal((await nodesOf(on)).find(({ name }) => name === 'ded-1')?.state, 'failing')

  const refused = await on.sluice('node', 'remove', 'ded-1')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /is assigned to globex/)
  assert.match(refused.stderr, /--force/)
  const removed = await run('node', 'remove', 'ded-1', '--force', '--yes')
  assert.match(removed.stderr, /calls of globex are refused as not-assigned/)
  await until('it is refused', async () => /not-assigned/.test((await call()).text))
  assert.doesNotMatch((await run('node', 'list')).stdout, /ded-1/)
  await until('the report ends', async () => /^state +ok$/m.test((await on.sluice('status')).stdout))
  const audit = await run('audit', 'tail', '--json')
  assert.match(audit.stdout, /node\.remove/)
  await run('node', 'add', 'ded-1', '--rpc', first.rpc)
  assert.equal(shared.calls.filter(({ method }) => method === 'getBalance').length, 0)
})

test('sluice status names a shared node that fails, while the others take its calls', async () => {
  await using a = await startFakeNode()
  const b = await startFakeNode()
  const nodes = [a, b].map(({ rpc, ws }, at) => ({ name: `node-${at}`, rpc, ws }))
  await using on = await startServedGateway(nodes)
  const shown = async () => (await on.sluice('status')).stdout
  await until('both nodes are healthy', async () => (await nodesOf(on)).every(({ state }) => state === 'healthy'))
  assert.doesNotMatch(await shown(), /^nodes/m)
  await b[Symbol.asyncDispose]()
  await until('status names it', async () =>
    /^nodes +1 of 2 failing: node-1 \(.+\); see: sluice upstream list$/m.test(await shown()),
  )
  assert.equal((await balance(on)).status, 200)
})
