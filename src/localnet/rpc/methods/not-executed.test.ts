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

type Simulated = Record<string, unknown> & { err: unknown }

const NOTHING_LOADED = { fee: null, loadedAccountsDataSize: 0, unitsConsumed: 0, preBalances: null, logs: [] }

describe('simulations of transactions that are not executed', () => {
  let server: TestServer
  let wallet: RpcWallet
  before(async () => {
    server = await startTestServer({ commitment: { confirmedSlots: 1, finalizedSlots: 3 } })
    wallet = await openRpcWallet(server)
  })
  after(() => server[Symbol.asyncDispose]())

  const simulate = async (wire: Uint8Array, config: object = {}) => {
    const all = { encoding: 'base64', commitment: 'processed', ...config }
    return (await server.call<Context<Simulated>>('simulateTransaction', base64(wire), all)).value
  }
  const balance = async (address: web3.PublicKey) =>
    (await server.call<Context<number>>('getBalance', address.toBase58(), { commitment: 'processed' })).value
  const pick = (from: object, members: object) =>
    Object.fromEntries(Object.entries(from).filter(([member]) => member in members))

  it('a simulation that executes nothing has no inner instructions', async () => {
    const inner = async (wire: Uint8Array) => (await simulate(wire, { innerInstructions: true }))['innerInstructions']
    const missing = new web3.TransactionInstruction({ programId: key(222), keys: [], data: Buffer.alloc(0) })
    assert.deepEqual(await inner(wallet.sign([wallet.transfer(SOL)])), [])
    assert.equal(await inner(wallet.sign([wallet.transfer(SOL)], wallet.payer, key(9).toBase58())), null)
    assert.equal(await inner(wallet.sign([missing])), null)
  })

  it('a fee payer that the fee leaves below its rent fails before any account is loaded', async () => {
    const poor = web3.Keypair.fromSeed(new Uint8Array(32).fill(203))
    await server.call('requestAirdrop', poor.publicKey.toBase58(), 892_000)
    await server.pass(1)
    const run = await simulate(wallet.sign([wallet.memo('hi')], poor))
    assert.deepEqual(run.err, { InsufficientFundsForRent: { account_index: 0 } })
    assert.deepEqual(pick(run, NOTHING_LOADED), NOTHING_LOADED)
    const spent = await simulate(wallet.sign([wallet.transfer((await balance(wallet.payer.publicKey)) - 6000)]))
    assert.deepEqual(spent.err, { InsufficientFundsForRent: { account_index: 0 } }, 'after execution')
    assert.equal(spent['fee'], 5000)
  })
})
