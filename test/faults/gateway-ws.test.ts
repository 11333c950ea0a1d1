import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { openWsTestClient, type WsTestClient } from '../support/gateway/ws-client.ts'
import { isFull } from '../support/process/property.ts'
import { hasVotes } from '../support/solana/chain-cell.ts'
import { type FaultRig, onBusyMachine, startFaultRig } from './gateway-rig.ts'

const CLIENTS = isFull ? 20 : 4
const ACCOUNTS = isFull ? 100 : 12
const METHODS = ['slotSubscribe', 'rootSubscribe', 'slotsUpdatesSubscribe', ...(hasVotes() ? ['voteSubscribe'] : [])]
const addressOf = (number: number) => encodeBase58(Uint8Array.from({ length: 32 }, (_, at) => (at < 4 ? 7 : number)))

/** Clients with subscriptions of every kind that notifies without a transaction, and of accounts that no other client subscribes to. */
async function openClients(rig: FaultRig, query = ''): Promise<WsTestClient[]> {
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () => openWsTestClient(`${rig.gateway.ws}/${query}`, { 'x-token': rig.token })),
  )
  for (const [at, client] of clients.entries()) {
    for (const method of METHODS) {
      const { result } = await client.call(method)
      assert.equal(typeof result, 'number')
    }
    for (let number = at; number < ACCOUNTS; number += CLIENTS) {
      const { result } = await client.call('accountSubscribe', [addressOf(number), { commitment: 'processed' }])
      assert.equal(typeof result, 'number')
    }
  }
  return clients
}

/** Changes every account, so that each subscription gets a notification. */
async function touchAccounts(rig: FaultRig): Promise<void> {
  for (let number = 0; number < ACCOUNTS; number++) {
    const outcome = await rig.chain.chain.airdrop(addressOf(number), 1_000_000_000n)
    assert.ok(outcome.ok)
  }
}

const SUBSCRIPTIONS = CLIENTS * METHODS.length + ACCOUNTS
const liveOf = (clients: readonly WsTestClient[]) => clients.reduce((sum, { reported }) => sum + reported.size, 0)
const idsOf = (clients: readonly WsTestClient[]) =>
  clients.map(({ reported }) => [...reported.keys()].toSorted((a, b) => a - b))

/** Waits until every subscription has got a notification from now on, under its old id. Returns how long that took. */
async function untilAllLive(rig: FaultRig, clients: readonly WsTestClient[], ids: number[][]): Promise<number> {
  const fromMs = performance.now()
  for (const { reported } of clients) reported.clear()
  let tookMs = 0
  const touching = (async () => {
    while (tookMs === 0) await touchAccounts(rig)
  })()
  try {
    await until('all get notifications again', () => liveOf(clients) >= SUBSCRIPTIONS, 20_000)
  } finally {
    tookMs = performance.now() - fromMs
    await touching
  }
  assert.deepEqual(idsOf(clients), ids)
  return tookMs
}

describe('F6: the WebSocket to an upstream is lost, at the gateway', () => {
  test('F6: reset, closed for good, or silent: all subscriptions live again within 3 s with the ids of the client', async (t) => {
    await using rig = await startFaultRig(['a', 'b'], {
      subscription: { overrides: { unitsPerSecond: null, wsSubscriptions: null } },
    })
    const [a, b] = rig.nodes
    const clients = await openClients(rig, '?gaps=1')
    await touchAccounts(rig)
    await until('all get notifications', () => liveOf(clients) === SUBSCRIPTIONS, 20_000)
    const ids = idsOf(clients)
    const heldAtNodes = () => rig.gateway.upstreams.status().reduce((sum, node) => sum + node.wsSubscriptions, 0)
    const held = heldAtNodes()

    const losses: [string, () => Promise<unknown> | undefined, () => Promise<unknown> | undefined][] = [
      ['reset', async () => [a, b].map((node) => node?.ws.resetConnections()), () => undefined],
      ['one node gone', () => a?.ws.disable(), () => a?.ws.enable()],
      ['the other gone', () => b?.ws.disable(), () => b?.ws.enable()],
    ]
    for (const [name, lose, mend] of losses) {
      await lose()
      const tookMs = await untilAllLive(rig, clients, ids)
      t.diagnostic(`${name}: all ${SUBSCRIPTIONS} live again after ${tookMs.toFixed(0)} ms (figure: 3000)`)
      assert.ok(tookMs <= onBusyMachine(3000, 15_000), `${name}: ${tookMs} ms`)
      await mend()
      await until('both have a WebSocket', () =>
        rig.gateway.upstreams.status().every(({ wsConnections }) => wsConnections > 0),
      )
    }
    // Packets are dropped: the missing slot notifications reveal it.
    const silent = a?.ws.add({ type: 'timeout', timeoutMs: 0 })
    const other = b?.ws.openConnections ?? 0
    assert.ok(other > 0)
    const tookMs = await untilAllLive(rig, clients, ids)
    t.diagnostic(`silent: all live again after ${tookMs.toFixed(0)} ms (figure: 3000)`)
    assert.ok(tookMs <= onBusyMachine(3000, 15_000), `silent: ${tookMs} ms`)
    silent?.remove()

    for (const { gaps } of clients) {
      for (const { result } of gaps) assert.ok(Number(result['toSlot']) >= Number(result['fromSlot']))
    }
    assert.ok(
      clients.some(({ gaps }) => gaps.length > 0),
      'a loss is reported to clients that requested it',
    )
    assert.equal(heldAtNodes(), held, 'no more subscriptions at the nodes than before')
    for (const { socket } of clients) socket.close()
    await until('none is left at the nodes', () => heldAtNodes() === 0)
  })
})
