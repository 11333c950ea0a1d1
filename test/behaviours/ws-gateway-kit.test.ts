import { after, before, describe, it } from 'node:test'
import type { Localnet } from '../../src/localnet/service.ts'
import {
  checkChainNotifications,
  checkTransferNotifications,
  createKitFlows,
  type KitFlows,
} from '../support/gateway/kit-flows.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

/** Unmodified kit, which cannot set a header on a WebSocket: it uses a ticket. */
describe('@solana/kit through the gateway with a ticket', () => {
  let node: Localnet
  let gateway: Gateway
  let flows: KitFlows

  before(async () => {
    node = await startQuickLocalnet({ votes: { enabled: true } })
    gateway = await startGateway([
      { name: 'one', rpc: `http://127.0.0.1:${node.rpc.port}`, ws: `ws://127.0.0.1:${node.ws.port}` },
    ])
    const headers = { 'x-token': (await gateway.subscribe({})).token }
    const response = await fetch(`${gateway.url}/v1/ws-ticket`, { method: 'POST', headers })
    const { url } = (await response.json()) as { url: string }
    flows = await createKitFlows({ rpc: gateway.url, ws: url, headers })
  })
  after(async () => {
    flows.stop()
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  it('airdrops, sends and confirms', () => flows.airdropAndSend())

  it('gets notifications of a transfer by account, program, logs, signature and block', () =>
    checkTransferNotifications(flows))

  it('gets slot, root, slotsUpdates and vote notifications', () => checkChainNotifications(flows, node.chain))
})
