import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import type { Localnet } from '../../src/localnet/service.ts'
import { endSocket } from '../support/gateway/web3js.ts'
import { startQuickLocalnet, untilBlock } from '../support/solana/localnet.ts'

const SOL = web3.LAMPORTS_PER_SOL

/** web3.js validates every notification, and drops its subscription when one is invalid. */
describe('@solana/web3.js 1.98 over PubSub', () => {
  let node: Localnet
  let connection: web3.Connection
  const payer = web3.Keypair.generate()

  before(async () => {
    node = await startQuickLocalnet()
    connection = new web3.Connection(`http://127.0.0.1:${node.rpc.port}`, {
      commitment: 'confirmed',
      wsEndpoint: `ws://127.0.0.1:${node.ws.port}`,
    })
    const signature = await connection.requestAirdrop(payer.publicKey, 20 * SOL)
    await connection.confirmTransaction({ signature, ...(await connection.getLatestBlockhash()) })
  })
  after(async () => {
    endSocket(connection)
    await node[Symbol.asyncDispose]()
  })

  it('sends and confirms, and receives account, program and logs notifications', async () => {
    const to = web3.Keypair.generate().publicKey
    const account = Promise.withResolvers<[web3.AccountInfo<Buffer>, web3.Context]>()
    const program = Promise.withResolvers<web3.KeyedAccountInfo>()
    const logs = Promise.withResolvers<web3.Logs>()
    const ids = {
      account: connection.onAccountChange(to, (info, context) => account.resolve([info, context])),
      program: connection.onProgramAccountChange(web3.SystemProgram.programId, (info) => {
        if (info.accountId.equals(to)) program.resolve(info)
      }),
      logs: connection.onLogs(to, (entry) => logs.resolve(entry)),
    }
    await subscribed(3)
    const transfer = web3.SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: SOL })
    const signature = await web3.sendAndConfirmTransaction(connection, new web3.Transaction().add(transfer), [payer])

    const [info, { slot }] = await account.promise
    assert.equal(info.lamports, SOL)
    assert.equal((await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 }))?.slot, slot)
    assert.equal((await program.promise).accountInfo.lamports, SOL)
    assert.deepEqual([(await logs.promise).signature, (await logs.promise).err], [signature, null])
    await connection.removeAccountChangeListener(ids.account)
    await connection.removeProgramAccountChangeListener(ids.program)
    await connection.removeOnLogsListener(ids.logs)
  })

  it('receives slots, slot updates, roots and a signature', async () => {
    const slot = Promise.withResolvers<web3.SlotInfo>()
    const root = Promise.withResolvers<number>()
    const missing = new Set([
      'firstShredReceived',
      'createdBank',
      'completed',
      'frozen',
      'optimisticConfirmation',
      'root',
    ])
    const updates = Promise.withResolvers<void>()
    const ids = {
      slot: connection.onSlotChange(slot.resolve),
      root: connection.onRootChange(root.resolve),
      update: connection.onSlotUpdate(({ type }) => {
        missing.delete(type)
        if (missing.size === 0) updates.resolve()
      }),
    }
    const { slot: number, parent } = await slot.promise
    assert.equal(parent, number - 1)
    assert.ok((await root.promise) < number + 100)
    await updates.promise
    await connection.removeSlotChangeListener(ids.slot)
    await connection.removeRootChangeListener(ids.root)
    await connection.removeSlotUpdateListener(ids.update)

    const airdrop = await connection.requestAirdrop(payer.publicKey, SOL)
    const landed = Promise.withResolvers<web3.SignatureResult>()
    connection.onSignature(airdrop, landed.resolve, 'finalized')
    assert.deepEqual(await landed.promise, { err: null })
  })

  /** web3.js subscribes in the background; the server's count shows when it is done. */
  async function subscribed(count: number): Promise<void> {
    const held = () =>
      Object.values(
        (connection as unknown as { _subscriptionsByHash: Record<string, { state: string }> })._subscriptionsByHash,
      ).filter(({ state }) => state === 'subscribed').length
    await untilBlock(node.chain, () => held() === count)
  }
})
