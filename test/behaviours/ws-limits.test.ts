import assert from 'node:assert/strict'
import { it } from 'node:test'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startWsGateway } from '../support/gateway/ws.ts'

type Response = { id: number; error?: { code: number; data: Record<string, unknown> } }

const IN_FLIGHT_MAX = 64
const HELD_REFUSALS = { interface: 'ws', limit: 'heldBytesPerSubscription' }

it('refuses a call over callsInFlight on one connection, and refunds it', async () => {
  await using node = await startFakeNode()
  await using ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
  const { token } = await ws.gateway.subscribe({})
  const client = await ws.open(token)
  const used = () => {
    const caller = ws.gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert.ok(caller.ok)
    return ws.gateway.access.quota(caller).month.used
  }
  const hold = Promise.withResolvers<void>()
  node.hold = hold.promise
  const call = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"getHealth"}`
  for (let id = 1; id <= IN_FLIGHT_MAX; id++) client.socket.send(call(id))
  await until('all are at the node', () => node.calls.length === IN_FLIGHT_MAX)
  const charged = used()
  assert.ok(charged >= IN_FLIGHT_MAX)
  for (let id = 101; id <= 110; id++) client.socket.send(call(id))
  for (let id = 101; id <= 110; id++) {
    const response = (await client.next()) as Response
    assert.equal(response.id, id)
    assert.deepEqual(
      [response.error?.code, response.error?.data['limit'], response.error?.data['size']],
      [-32429, 'callsInFlight', IN_FLIGHT_MAX],
    )
  }
  assert.equal(used(), charged)
  // A batch is charged item by item, and each refused item is refunded.
  client.socket.send(`[${[call(111), call(112)].join(',')}]`)
  assert.equal(((await client.next()) as Response[]).length, 2)
  assert.equal(used(), charged)
  hold.resolve()
  for (let read = 0; read < IN_FLIGHT_MAX; read++) assert.equal(((await client.next()) as Response).error, undefined)
  assert.equal(used(), charged)
  assert.equal(node.calls.length, IN_FLIGHT_MAX)
  client.socket.send(call(120))
  assert.equal(((await client.next()) as Response).error, undefined)
  assert.ok(used() > charged)
})

it('holds the responses of calls within the byte budget, and names the limit that is reached', async () => {
  await using node = await startFakeNode()
  const nodes = [{ name: 'one', rpc: node.rpc, ws: node.ws }]
  await using ws = await startWsGateway(nodes, {}, undefined, { ownerBytesMax: 600_000 })
  const { token } = await ws.gateway.subscribe({})
  const client = await ws.open(token)
  let size = 1_000_000
  node.respond = () => ({ result: `"${'x'.repeat(size)}"` })
  const call = async (id: number) => {
    client.socket.send(`{"jsonrpc":"2.0","id":${id},"method":"getBlock"}`)
    return (await client.next()) as Response
  }
  const refused = await call(1)
  assert.deepEqual(
    [refused.error?.code, refused.error?.data['limit'], refused.error?.data['size']],
    [-32503, 'heldBytesPerSubscription', 600_000],
  )
  assert.equal(refused.error?.data['charged'], true)
  const caller = ws.gateway.access.authenticate({ token }, 'bundle', Date.now())
  assert.ok(caller.ok)
  assert.ok(ws.gateway.access.quota(caller).month.used > 0, 'the call stays charged, as the error states')
  // The bytes held for the refused response are released.
  size = 500_000
  for (const id of [2, 3]) assert.equal((await call(id)).error, undefined)
})

it('counts the responses that slow clients of one subscription have not read, over all their connections', async () => {
  await using node = await startFakeNode()
  const nodes = [{ name: 'one', rpc: node.rpc, ws: node.ws }]
  const plans = { professional: { ...BUILT_IN_PLANS.professional, unitsPerSecond: null } }
  const options = { pendingBytesMax: 100_000_000, stallMs: 60_000 }
  await using ws = await startWsGateway(nodes, options, plans, { ownerBytesMax: 8_000_000 })
  const [{ token }, other] = [await ws.gateway.subscribe({}), await ws.gateway.subscribe({})]
  node.respond = () => ({ result: `"${'x'.repeat(1_900_000)}"` })
  const clients = [await ws.open(token), await ws.open(token), await ws.open(token)]
  for (const { socket } of clients) socket.pause()
  let sent = 0
  // The buffers of the kernel take some megabytes of each connection.
  await until('the limit is reached', () => {
    if (sent < 90) {
      for (const { socket } of clients) socket.send('{"jsonrpc":"2.0","id":1,"method":"getBlock"}')
      sent += clients.length
    }
    return (ws.registry.value('sluice_bundle_refused_total', HELD_REFUSALS) ?? 0) > 0
  })
  const unaffected = await ws.open(other.token)
  assert.equal(((await unaffected.call('getBlock')) as Response).error, undefined)
  for (const { socket } of clients) socket.resume()
  await until('they have read all', () => clients.reduce((sum, { texts }) => sum + texts.length, 0) === sent)
  for (const { texts, call } of clients) {
    texts.splice(0)
    assert.equal(((await call('getBlock')) as Response).error, undefined)
  }
})
