import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { after, before, describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import { startTestServer, type TestServer } from '../../../../test/support/solana/rpc-server.ts'
import { base64, type Context, openRpcWallet, type RpcWallet, SOL } from '../../../../test/support/solana/rpc-wallet.ts'

type Simulated = Record<string, unknown> & { err: unknown }

const U64_MAX = 18446744073709551615n
const Budget = web3.ComputeBudgetProgram
const request = (...data: number[]) =>
  new web3.TransactionInstruction({ programId: Budget.programId, keys: [], data: Buffer.from(data) })
const NOTHING_LOADED = { fee: null, loadedAccountsDataSize: 0, unitsConsumed: 0, preBalances: null, logs: [] }

describe('requests of the Compute Budget program', () => {
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

  it('are part of the form of a transaction: one that is malformed or repeated makes it invalid', async () => {
    const limit = Budget.setComputeUnitLimit({ units: 1000 })
    const repeated = 'Transaction contains a duplicate instruction (2) that is not allowed'
    const malformed = 'Error processing Instruction 1: invalid instruction data'
    const invalid: [web3.TransactionInstruction[], string][] = [
      [[limit, Budget.setComputeUnitPrice({ microLamports: 1 }), limit], repeated],
      [[limit, request()], malformed],
      [[limit, request(0, 0, 0, 0, 0, 0, 0, 0, 0)], malformed],
      [[limit, request(3, 1, 0, 0, 0)], malformed],
      [[limit, request(5, 0, 0, 0, 0)], malformed],
    ]
    for (const [instructions, reason] of invalid) {
      const wire = wallet.sign([...instructions, wallet.transfer(SOL)])
      for (const [method, config] of [
        ['sendTransaction', {}],
        ['sendTransaction', { skipPreflight: true }],
        ['simulateTransaction', { replaceRecentBlockhash: true }],
      ] as const) {
        assert.deepEqual(await server.refusal(method, base64(wire), { encoding: 'base64', ...config }), [
          -32602,
          `invalid transaction: ${reason}`,
        ])
      }
    }
    const longer = wallet.sign([request(2, 0, 10, 0, 0, 7, 7), wallet.transfer(SOL)])
    assert.equal((await simulate(longer)).err, null, 'bytes after the value are ignored')
  })

  it('out of range fail before any account is loaded, and cost nothing', async () => {
    const before = await balance(wallet.payer.publicKey)
    const requests: [web3.TransactionInstruction, unknown, string][] = [
      [
        request(4, 0, 0, 0, 0),
        'InvalidLoadedAccountsDataSizeLimit',
        'LoadedAccountsDataSizeLimit set for transaction must be greater than 0.',
      ],
      ...[33 * 1024 + 1, 31 * 1024, 257 * 1024].map((bytes): [web3.TransactionInstruction, unknown, string] => [
        Budget.requestHeapFrame({ bytes }),
        { InstructionError: [0, 'InvalidInstructionData'] },
        'Error processing Instruction 0: invalid instruction data',
      ]),
    ]
    for (const [instruction, err, text] of requests) {
      const wire = wallet.sign([instruction, wallet.transfer(SOL)])
      for (const config of [{}, { replaceRecentBlockhash: true }]) {
        const run = await simulate(wire, { innerInstructions: true, ...config })
        assert.deepEqual(run.err, err)
        assert.deepEqual(pick(run, NOTHING_LOADED), NOTHING_LOADED)
        assert.equal(run['innerInstructions'], null)
      }
      const { error } = await server.ask('sendTransaction', base64(wire), {
        encoding: 'base64',
        preflightCommitment: 'processed',
      })
      assert(error !== undefined)
      assert.deepEqual([error.code, error.message], [-32002, `Transaction simulation failed: ${text}`])
      assert.deepEqual((error.data as Simulated)['fee'], null)
      const signature = await wallet.send(wire, { skipPreflight: true })
      await server.pass(1)
      const { value } = await server.call<Context<unknown[]>>('getSignatureStatuses', [signature])
      assert.deepEqual(value, [null])
    }
    assert.equal(await balance(wallet.payer.publicKey), before)
    assert.equal(
      (await simulate(wallet.sign([Budget.requestHeapFrame({ bytes: 262_144 }), wallet.transfer(SOL)]))).err,
      null,
    )
  })

  it('that cannot be met have no price', async () => {
    const fee = async (...instructions: web3.TransactionInstruction[]) => {
      const transaction = new web3.Transaction({ feePayer: wallet.payer.publicKey, recentBlockhash: wallet.recent() })
      const message = base64(transaction.add(...instructions, wallet.transfer(SOL)).serializeMessage())
      return (await server.call<Context<number | bigint>>('getFeeForMessage', message, { commitment: 'processed' }))
        .value
    }
    const price = Budget.setComputeUnitPrice({ microLamports: 1_000_000 })
    assert.equal(await fee(price), 5000 + 2 * 3000)
    assert.equal(await fee(price, price), 5000)
    assert.equal(await fee(price, request(4, 0, 0, 0, 0)), 5000)
    const highest = [
      Budget.setComputeUnitPrice({ microLamports: U64_MAX }),
      Budget.setComputeUnitLimit({ units: 1_400_000 }),
    ]
    assert.equal(await fee(...highest), U64_MAX, 'a fee has 64 bits')
    assert.equal((await simulate(wallet.sign([...highest, wallet.transfer(SOL)]))).err, 'InsufficientFundsForFee')
  })
})
