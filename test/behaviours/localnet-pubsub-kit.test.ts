import { after, before, describe, it } from 'node:test'
import type { Localnet } from '../../src/localnet/service.ts'
import {
  checkChainNotifications,
  checkTransferNotifications,
  createKitFlows,
  type KitFlows,
} from '../support/kit-flows.ts'
import { startQuickLocalnet } from '../support/localnet.ts'

/** Unmodified kit, both its clients; every subscription it knows. */
describe('@solana/kit over the PubSub door', () => {
  let node: Localnet
  let flows: KitFlows

  before(async () => {
    node = await startQuickLocalnet()
    flows = await createKitFlows({
      rpc: `http://127.0.0.1:${node.rpc.port}`,
      ws: `ws://127.0.0.1:${node.ws.port}`,
    })
  })
  after(async () => {
    flows.stop()
    await node[Symbol.asyncDispose]()
  })

  it('airdrops and sends, confirmed through subscriptions', () => flows.airdropAndSend())

  it('tells account, program, logs, signature and block of a transfer', () => checkTransferNotifications(flows))

  it('tells slots, roots, slot updates and votes as they come', () =>
    checkChainNotifications(flows, node.chain.voteAccount))
})
