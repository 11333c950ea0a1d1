import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { FIRST_ID } from '../../src/gateway/pubsub/subscriptions.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { startWsGateway } from '../support/gateway/ws.ts'

type Response = { id: unknown; result: never; error: { code: number; message: string; data: Record<string, unknown> } }
type Reported = { method: string; params: { subscription: number; result: Record<string, never> } }

const BACK_WITHIN_MS = 3000

const optionsOf = (name: string, { rpc, ws }: FakeNode) => ({ name, rpc, ws })
const held = (node: FakeNode, method: string) =>
  [...node.subscriptions.values()].filter((entry) => entry.method === method).length
const account = (slot: number, lamports: number) =>
  `{"context":{"apiVersion":"4.2.1","slot":${slot}},"value":{"lamports":${lamports}}}`

function cut(node: FakeNode): void {
  for (const client of node.wsClients) client.terminate()
}

describe('the WebSocket server when a node is lost', () => {
  it('moves every subscription to another node under the same ids, and sends gap notifications on request', async () => {
    await using first = await startFakeNode()
    await using second = await startFakeNode()
    await using ws = await startWsGateway([optionsOf('first', first), optionsOf('second', second)])
    const { token, id } = await ws.gateway.subscribe({})
    const [reported, unreported] = [await ws.open(token, '?gaps=1'), await ws.open(token)]
    await reported.call('logsSubscribe', ['allWithVotes'])
    const { result: reportedId } = (await reported.call('logsSubscribe', ['all'])) as Response
    const { result: unreportedId } = (await unreported.call('logsSubscribe', ['all'])) as Response
    await reported.call('logsUnsubscribe', [FIRST_ID])
    assert.deepEqual([reportedId, unreportedId], [FIRST_ID + 1, FIRST_ID])
    const [from, to] = held(first, 'logsSubscribe') === 1 ? [first, second] : [second, first]
    const logs = (slot: number) => `{"context":{"slot":${slot}},"value":{"signature":"s${slot}"}}`
    from.notify('logsSubscribe', logs(2000))
    await Promise.all([reported.next(), unreported.next()])

    const fromMs = performance.now()
    await from[Symbol.asyncDispose]()
    await until('the other node has it', () => held(to, 'logsSubscribe') === 1, BACK_WITHIN_MS)
    assert.ok(performance.now() - fromMs < BACK_WITHIN_MS)
    const gap = (await reported.next()) as Reported
    assert.deepEqual([gap.method, gap.params.subscription], ['gapNotification', FIRST_ID + 1])
    const { fromSlot, toSlot, reason } = gap.params.result
    assert.deepEqual([fromSlot, reason], [2000, 'closed'])
    assert.ok(Number(toSlot) >= 2000)

    // Late notifications of the other node were delivered before.
    to.notify('logsSubscribe', logs(1999))
    to.notify('logsSubscribe', logs(2000))
    to.notify('logsSubscribe', logs(2001))
    for (const [client, own] of [
      [reported, FIRST_ID + 1],
      [unreported, FIRST_ID],
    ] as const) {
      for (const slot of [2000, 2001]) {
        const { params } = (await client.next()) as Reported
        assert.deepEqual([params.subscription, params.result['context']], [own, { slot }])
      }
    }
    assert.equal(ws.gateway.access.permits.taken(id).wsSubscriptions, 2)
    reported.socket.close()
    unreported.socket.close()
    await until('no subscription is left behind', () => held(to, 'logsSubscribe') === 0)
    assert.equal(ws.server.upstreamSubscriptions, 0)
  })

  for (const [slotMs, unreported, first] of [
    [400, 64, 1800],
    [200, 96, 2001],
  ] as const) {
    it(`counts the slots of a gap and of a lagging node in the length of a slot: ${slotMs} ms`, async () => {
      await using node = await startFakeNode(2000)
      node.samples = `[{"slot":2000,"numSlots":${60_000 / slotMs},"samplePeriodSecs":60}]`
      await using ws = await startWsGateway([optionsOf('only', node)])
      const { slotLength } = ws.upstreams.shared
      await until('the length is known', () => slotLength.isLearned && slotLength.ms() === slotMs)
      const client = await ws.open((await ws.gateway.subscribe({})).token, '?gaps=1')
      const logs = (slot: number) => `{"context":{"slot":${slot}},"value":{"signature":"s${slot}"}}`
      await client.call('logsSubscribe', ['all'])
      await until('the slot is known', () => ws.upstreams.shared.bestSlot === 2000)
      cut(node)
      await until('it is back', () => held(node, 'logsSubscribe') === 1, BACK_WITHIN_MS)
      assert.equal(((await client.next()) as Reported).params.result['fromSlot'], 2000 - unreported)

      node.notify('logsSubscribe', logs(2000))
      await client.next()
      cut(node)
      await until('it is back again', () => held(node, 'logsSubscribe') === 1, BACK_WITHIN_MS)
      await client.next()
      // 200 slots are 80 s, a chain that was reset, or 40 s, a node that lags.
      node.notify('logsSubscribe', logs(1800))
      node.notify('logsSubscribe', logs(2001))
      assert.deepEqual(((await client.next()) as Reported).params.result['context'], { slot: first })
    })
  }

  it('resubscribes when the only node is back, and reads again what can be read', async () => {
    await using node = await startFakeNode()
    await using ws = await startWsGateway([optionsOf('only', node)])
    const client = await ws.open((await ws.gateway.subscribe({})).token)
    await client.call('accountSubscribe', ['changed', { encoding: 'base64' }])
    await client.call('accountSubscribe', ['same', { encoding: 'base64' }])
    await client.call('signatureSubscribe', ['landed', { commitment: 'confirmed' }])
    await client.call('signatureSubscribe', ['pending', { commitment: 'confirmed' }])
    node.notify('accountSubscribe', account(1000, 5))
    await client.next()
    await client.next()
    node.respond = (method, params) => {
      const [target] = params as [unknown]
      if (method === 'getAccountInfo') return { result: account(1005, target === 'same' ? 5 : 6) }
      if (method !== 'getSignatureStatuses') return undefined
      const status = String(target) === 'landed' ? 'finalized' : 'processed'
      return { result: `{"context":{"slot":1006},"value":[{"confirmationStatus":"${status}","err":null,"slot":1001}]}` }
    }

    cut(node)
    await until('the node has all', () => held(node, 'accountSubscribe') === 2, BACK_WITHIN_MS)
    const both = [(await client.next()) as Reported, (await client.next()) as Reported]
    const byId = new Map(both.map(({ method, params }) => [params.subscription, { method, result: params.result }]))
    assert.deepEqual(byId.get(FIRST_ID), { method: 'accountNotification', result: JSON.parse(account(1005, 6)) })
    assert.deepEqual(byId.get(FIRST_ID + 2), {
      method: 'signatureNotification',
      result: { context: { slot: 1006 }, value: { err: null } },
    })
    assert.equal(((await client.call('signatureUnsubscribe', [FIRST_ID + 2])) as Response).error.code, -32602)
    assert.equal(((await client.call('signatureUnsubscribe', [FIRST_ID + 3])) as Response).result, true)
    const asked = node.calls.find(({ body }) => body.includes('changed'))?.body ?? ''
    assert.deepEqual((JSON.parse(asked) as { params: unknown }).params, ['changed', { encoding: 'base64' }])
    await until('the landed one is over at the node too', () => held(node, 'signatureSubscribe') === 0)
    assert.deepEqual(client.texts, [])
  })

  it('loses none of several hundred subscriptions', async () => {
    const COUNT = 300
    await using first = await startFakeNode()
    await using second = await startFakeNode()
    await using ws = await startWsGateway([optionsOf('first', first), optionsOf('second', second)])
    const client = await ws.open((await ws.gateway.subscribe({})).token)
    for (let at = 0; at < COUNT; at++) {
      assert.equal(((await client.call('logsSubscribe', [{ mentions: [`m${at}`] }])) as Response).result, FIRST_ID + at)
    }
    const nodes = [first, second]
    const live = () => nodes.reduce((sum, node) => sum + held(node, 'logsSubscribe'), 0)
    for (const lost of [first, second, first]) {
      const gone = [...lost.wsClients].map((connection) => once(connection, 'close'))
      cut(lost)
      await Promise.all(gone)
      assert.ok(live() < COUNT)
      await until('all live again', () => live() === COUNT, BACK_WITHIN_MS)
      // A slow node is replaced, and may for a while keep a subscription that has moved to another node: notify until all have received one.
      const seen = new Set<number>()
      await until('every subscription has a notification under its id', () => {
        for (const node of nodes) node.notify('logsSubscribe', '{"context":{"slot":3000},"value":{}}')
        for (const text of client.texts.splice(0)) seen.add((JSON.parse(text) as Reported).params.subscription)
        return seen.size === COUNT
      })
      assert.deepEqual([Math.min(...seen), Math.max(...seen)], [FIRST_ID, FIRST_ID + COUNT - 1])
      await until('none is held twice', () => live() === COUNT)
    }
    assert.equal(ws.server.upstreamSubscriptions, COUNT)
  })

  it('refuses a subscribe without an available node, and does not charge it', async () => {
    const node = await startFakeNode()
    await using ws = await startWsGateway([optionsOf('only', node)])
    const { token, id } = await ws.gateway.subscribe({})
    const client = await ws.open(token)
    await node[Symbol.asyncDispose]()
    await until('the loss was noticed', () => ws.upstreams.status().every(({ wsConnections }) => wsConnections === 0))
    const { error } = (await client.call('slotSubscribe', [], 'x')) as Response
    assert.equal(error.code, -32503)
    assert.equal(ws.gateway.access.permits.taken(id).wsSubscriptions, 0)
    assert.equal(ws.server.upstreamSubscriptions, 0)
    const { result } = (await client.call('getRateLimits')) as { result: { month: { used: number } } }
    assert.equal(result.month.used, 0)
  })

  it('closes a client that does not read and serves the others', async () => {
    await using node = await startFakeNode()
    await using ws = await startWsGateway([optionsOf('only', node)], { stallMs: 300 })
    const { token, id } = await ws.gateway.subscribe({})
    const [stuck, reads] = [await ws.open(token), await ws.open(token)]
    await stuck.call('logsSubscribe', ['all'])
    await reads.call('logsSubscribe', ['all'])
    stuck.socket.pause()
    const large = JSON.stringify('x'.repeat(1_000_000))
    for (let sent = 0; sent < 30; sent++) {
      node.notify('logsSubscribe', large)
      await reads.next()
    }
    await until(
      'the permit of the stuck client is released',
      () => ws.gateway.access.permits.taken(id).wsConnections === 1,
    )
    assert.equal(reads.socket.readyState, reads.socket.OPEN)
    assert.equal(ws.gateway.access.permits.taken(id).wsSubscriptions, 1)
  })
})

describe('a subscription with dedicated nodes', () => {
  it('is moved to them and shares nothing with others', async () => {
    await using shared = await startFakeNode()
    await using own = await startFakeNode()
    await using ws = await startWsGateway([optionsOf('shared', shared)])
    const { token, id } = await ws.gateway.subscribe({})
    const before = await ws.open(token)
    const other = await ws.open((await ws.gateway.subscribe({})).token)
    await before.call('rootSubscribe')
    await other.call('rootSubscribe')
    await ws.upstreams.setDedicated([
      { name: 'own', subscriptionId: id, rpc: own.rpc, ws: own.ws, grpc: '', credential: null },
    ])
    assert.equal((await before.closed()).code, 1012)
    const client = await ws.open(token)
    assert.equal(((await client.call('rootSubscribe')) as Response).result, FIRST_ID)
    assert.deepEqual([held(own, 'rootSubscribe'), held(shared, 'rootSubscribe')], [1, 1])
    shared.notify('rootSubscribe', '1')
    own.notify('rootSubscribe', '2')
    assert.equal(((await client.next()) as Reported).params.result, 2)
    assert.equal(((await other.next()) as Reported).params.result, 1)

    await ws.upstreams.setDedicated([])
    const asked = () => shared.texts.filter((text) => text.includes('rootSubscribe')).length
    await until('the shared node was asked for it', () => asked() === 2, BACK_WITHIN_MS)
    shared.notify('rootSubscribe', '3')
    assert.equal(((await client.next()) as Reported).params.result, 3)
  })
})
