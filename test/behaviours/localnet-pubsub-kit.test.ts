import { after, before, describe, it } from 'node:test'
import type { Localnet } from '../../src/localnet/service.ts'
import {
  checkChainNotifications,
  checkTransferNotifications,
  createKitFlows,
  type KitFlows,
} from '../support/gateway/kit-flows.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

/** Unmodified kit with every subscription it supports. */
describe('@solana/kit over PubSub', () => {
  let node: Localnet
  let flows: KitFlows

  before(async () => {
    node = await startQuickLocalnet({ votes: { enabled: true } })
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

  it('receives account, program, logs, signature and block notifications of a transfer', () =>
    checkTransferNotifications(flows))

  it('receives slots, roots, slot updates and votes', () => checkChainNotifications(flows, node.chain))
})
