import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { after, before, describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import { startTestServer, type TestServer } from '../../../../test/support/solana/rpc-server.ts'
import {
  base64,
  type Context,
  key,
  openRpcWallet,
  type RpcWallet,
  SOL,
} from '../../../../test/support/solana/rpc-wallet.ts'

describe('methods about fees', () => {
  let server: TestServer
  let wallet: RpcWallet
  before(async () => {
    server = await startTestServer({ commitment: { confirmedSlots: 1, finalizedSlots: 3 } })
    wallet = await openRpcWallet(server)
  })
  after(() => server[Symbol.asyncDispose]())

  it('getFeeForMessage knows a durable nonce only where its authority signs', async () => {
    const nonce = web3.Keypair.fromSeed(new Uint8Array(32).fill(204))
    const payer = wallet.payer.publicKey
    const created = new web3.Transaction({ feePayer: payer, recentBlockhash: wallet.recent() })
    created.add(
      web3.SystemProgram.createNonceAccount({
        fromPubkey: payer,
        noncePubkey: nonce.publicKey,
        authorizedPubkey: payer,
        lamports: SOL,
      }),
    )
    created.sign(wallet.payer, nonce)
    await wallet.send(created.serialize(), { preflightCommitment: 'processed' })
    await server.pass(1)
    const { value } = await server.call<Context<{ data: [string] }>>('getAccountInfo', nonce.publicKey.toBase58(), {
      encoding: 'base64',
      commitment: 'processed',
    })
    const held = new web3.PublicKey(Buffer.from(value.data[0], 'base64').subarray(40, 72)).toBase58()
    const fee = async (authorizedPubkey: web3.PublicKey) => {
      const transaction = new web3.Transaction({ feePayer: payer, recentBlockhash: held })
      transaction.add(
        web3.SystemProgram.nonceAdvance({ noncePubkey: nonce.publicKey, authorizedPubkey }),
        wallet.transfer(SOL),
      )
      const text = base64(transaction.serializeMessage())
      return (await server.call<Context<number>>('getFeeForMessage', text, { commitment: 'processed' })).value
    }
    assert.equal(await fee(payer), 5000)
    assert.equal(await fee(key(205)), null)
  })
})
