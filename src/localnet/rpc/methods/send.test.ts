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
import { encodeBase58 } from '../../../solana/crypto/base58.ts'

type Blockhash = { blockhash: string; lastValidBlockHeight: number }
type Simulated = Record<string, unknown> & { err: unknown; logs: string[]; unitsConsumed: number; accounts: unknown }

const FAR = 9223372036854775807n
const TABLE_KEYS = Array.from({ length: 127 }, (_, index) => key(100 + index))
/** The account of an active lookup table: its type, deactivation slot and 44 bytes of other fields, then the addresses. */
const tableData = Buffer.concat([
  Buffer.of(1, 0, 0, 0),
  Buffer.alloc(8, 0xff),
  Buffer.alloc(44),
  ...TABLE_KEYS.map((address) => address.toBuffer()),
])
const TABLE = new web3.AddressLookupTableAccount({
  key: key(98),
  state: web3.AddressLookupTableAccount.deserialize(tableData),
})
const tableAccount = {
  lamports: BigInt(SOL),
  owner: web3.AddressLookupTableProgram.programId.toBase58(),
  data: tableData,
  executable: false,
  rentEpoch: 18446744073709551615n,
}
const poor = web3.Keypair.fromSeed(new Uint8Array(32).fill(2))

describe('methods that send and price transactions', () => {
  let server: TestServer
  let wallet: RpcWallet
  before(async () => {
    server = await startTestServer(
      { commitment: { confirmedSlots: 1, finalizedSlots: 3 } },
      { fixtures: [[TABLE.key.toBase58(), tableAccount]] },
    )
    wallet = await openRpcWallet(server)
  })
  after(() => server[Symbol.asyncDispose]())

  const simulate = async (wire: Uint8Array, config: object = {}) => {
    const all = { encoding: 'base64', commitment: 'processed', ...config }
    return (await server.call<Context<Simulated>>('simulateTransaction', base64(wire), all)).value
  }

  it('getLatestBlockhash, isBlockhashValid', async () => {
    const { value } = await server.call<Context<Blockhash>>('getLatestBlockhash', { commitment: 'processed' })
    assert.equal(value.lastValidBlockHeight, server.chain.slot('processed') + 150)
    const valid = async (hash: string) =>
      (await server.call<Context<boolean>>('isBlockhashValid', hash, { commitment: 'processed' })).value
    assert.equal(await valid(value.blockhash), true)
    assert.equal(await valid(key(9).toBase58()), false)
    assert.deepEqual(await server.refusal('isBlockhashValid', 'x'), [-32602, 'WrongSize'])
    assert.deepEqual(await server.refusal('isBlockhashValid', value.blockhash, { minContextSlot: FAR }), [
      -32016,
      'Minimum context slot has not been reached',
    ])
  })

  it('getFeeForMessage', async () => {
    const fee = async (instructions: web3.TransactionInstruction[], blockhash?: string) => {
      const transaction = new web3.Transaction({
        feePayer: wallet.payer.publicKey,
        recentBlockhash: blockhash ?? wallet.recent(),
      })
      const message = base64(transaction.add(...instructions).serializeMessage())
      return (await server.call<Context<number | null>>('getFeeForMessage', message, { commitment: 'processed' })).value
    }
    assert.equal(await fee([wallet.transfer(1)]), 5000)
    const priced = [
      web3.ComputeBudgetProgram.setComputeUnitLimit({ units: 1000 }),
      web3.ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 5_000_000 }),
    ]
    assert.equal(await fee([...priced, wallet.transfer(1)]), 5000 + 5000)
    assert.equal(await fee([wallet.transfer(1)], key(9).toBase58()), null)
    assert.equal((await server.refusal('getFeeForMessage', 'someInvalidMessage'))[0], -32602)
    const blockhash = wallet.recent()
    const feeAfter = async (blocks: number) => {
      await server.pass(blocks)
      return fee([wallet.transfer(1)], blockhash)
    }
    assert.deepEqual([await feeAfter(151), await feeAfter(149), await feeAfter(1)], [5000, 5000, null])
  })

  it('getFeeForMessage resolves the lookup tables', async () => {
    const ask = (table: web3.AddressLookupTableAccount, tableKeys: number) => {
      const message = new web3.TransactionMessage({
        payerKey: wallet.payer.publicKey,
        recentBlockhash: wallet.recent(),
        instructions: [locking(tableKeys)],
      })
      const text = base64(message.compileToV0Message([table]).serialize())
      return server.ask('getFeeForMessage', text, { commitment: 'processed' })
    }
    assert.equal(((await ask(TABLE, 127)).result as Context<number>).value, 5000)
    const at = (address: web3.PublicKey) => new web3.AddressLookupTableAccount({ key: address, state: TABLE.state })
    const longer = { ...TABLE.state, addresses: [...Array.from({ length: 127 }, () => key(99)), ...TABLE_KEYS] }
    const refused: [web3.AddressLookupTableAccount, string][] = [
      [at(key(77)), 'Attempted to lookup addresses from a table that does not exist'],
      [at(wallet.payer.publicKey), 'Attempted to lookup addresses from an account owned by the wrong program'],
      [
        new web3.AddressLookupTableAccount({ key: TABLE.key, state: longer }),
        'Address lookup contains an invalid index',
      ],
    ]
    for (const [table, reason] of refused) {
      const { error } = await ask(table, 2)
      assert.deepEqual([error?.code, error?.message], [-32602, `invalid transaction message: ${reason}`])
    }
  })

  it('getRecentPrioritizationFees', async () => {
    await wallet.send(
      wallet.sign([web3.ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 777 }), wallet.transfer(SOL, 51)]),
    )
    await server.pass(1)
    const slot = server.chain.slot('processed')
    type Fee = { slot: number; prioritizationFee: number }
    const at = async (...addresses: string[]) =>
      (await server.call<Fee[]>('getRecentPrioritizationFees', addresses)).find((fee) => fee.slot === slot)
        ?.prioritizationFee
    assert.equal(await at(), 777)
    assert.equal(await at(key(51).toBase58()), 777)
    const many = Array.from({ length: 129 }, () => key(51).toBase58())
    assert.deepEqual(await server.refusal('getRecentPrioritizationFees', many), [
      -32602,
      'Too many inputs provided; max 128',
    ])
    assert.deepEqual(await server.refusal('getRecentPrioritizationFees', ['x']), [-32602, 'Invalid param: WrongSize'])
  })

  it('requestAirdrop', async () => {
    const address = key(52).toBase58()
    const first = await server.call<string>('requestAirdrop', address, SOL)
    const second = await server.call<string>('requestAirdrop', address, SOL)
    assert.notEqual(first, second)
    await server.pass(1)
    assert.equal(
      (await server.call<Context<number>>('getBalance', address, { commitment: 'processed' })).value,
      2 * SOL,
    )
    assert.deepEqual(await server.refusal('requestAirdrop', 'x', 1), [-32602, 'Invalid param: WrongSize'])
    assert.deepEqual(await server.refusal('requestAirdrop', address), [
      -32602,
      '`params` should have at least 2 argument(s)',
    ])
    assert.deepEqual(await server.refusal('requestAirdrop', address, 1, { recentBlockhash: 'x' }), [
      -32602,
      'Invalid param: WrongSize',
    ])
  })

  it('sendTransaction lands and returns the signature', async () => {
    const wire = wallet.sign([wallet.transfer(SOL, 53)])
    const signature = await wallet.send(wire)
    assert.equal(signature, encodeBase58(wire.subarray(1, 65)))
    const again = wallet.sign([wallet.transfer(SOL, 54)])
    assert.equal(await server.call('sendTransaction', encodeBase58(again)), encodeBase58(again.subarray(1, 65)))
    await server.pass(1)
    assert.equal(
      (await server.call<Context<number>>('getBalance', key(53).toBase58(), { commitment: 'processed' })).value,
      SOL,
    )
  })

  it('sendTransaction refuses in preflight with the simulation as error data', async () => {
    const preflight = async (wire: Uint8Array) => {
      const { error } = await server.ask('sendTransaction', base64(wire), {
        encoding: 'base64',
        preflightCommitment: 'processed',
      })
      assert.equal(error?.code, -32002)
      return { message: error.message, data: error.data as Simulated }
    }
    const forged = wallet.sign([wallet.transfer(1)])
    forged.fill(0, 1, 65)
    const { message, data } = await preflight(forged)
    assert.equal(message, 'Transaction simulation failed: Transaction did not pass signature verification')
    assert.deepEqual(Object.keys(data).sort(), [
      'accounts',
      'err',
      'fee',
      'innerInstructions',
      'loadedAccountsDataSize',
      'loadedAddresses',
      'logs',
      'postBalances',
      'postTokenBalances',
      'preBalances',
      'preTokenBalances',
      'replacementBlockhash',
      'returnData',
      'unitsConsumed',
    ])
    assert.deepEqual([data.err, data.logs, data.unitsConsumed], ['SignatureFailure', [], 0])

    const unknown = await preflight(wallet.sign([wallet.transfer(1)], wallet.payer, key(9).toBase58()))
    assert.equal(unknown.message, 'Transaction simulation failed: Blockhash not found')
    assert.equal(unknown.data.err, 'BlockhashNotFound')
    const broke = await preflight(wallet.sign([wallet.transfer(1, 50, poor)], poor))
    assert.equal(
      broke.message,
      'Transaction simulation failed: Attempt to debit an account but found no record of a prior credit.',
    )
    const tooMuch = await preflight(wallet.sign([wallet.transfer(10_000 * SOL)]))
    assert.equal(
      tooMuch.message,
      'Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1',
    )
    assert.deepEqual(tooMuch.data.err, { InstructionError: [0, { Custom: 1 }] })
    assert.ok(tooMuch.data.logs.some((line) => line.includes('insufficient lamports')))
    const landed = wallet.sign([wallet.transfer(SOL, 55)])
    await wallet.send(landed)
    assert.equal(
      (await preflight(landed)).message,
      'Transaction simulation failed: This transaction has already been processed',
    )
  })

  it('sendTransaction without preflight also accepts transactions that do not land', async () => {
    const failing = wallet.sign([wallet.transfer(20_000 * SOL)])
    const signature = await wallet.send(failing, { skipPreflight: true })
    await server.pass(1)
    const { value } = await server.call<Context<{ err: unknown; status: unknown }[]>>('getSignatureStatuses', [
      signature,
    ])
    assert.deepEqual(value[0]?.err, { InstructionError: [0, { Custom: 1 }] })
    assert.deepEqual(value[0]?.status, { Err: { InstructionError: [0, { Custom: 1 }] } })
    const lost = wallet.sign([wallet.transfer(1)], wallet.payer, key(9).toBase58())
    assert.equal(await wallet.send(lost, { skipPreflight: true }), encodeBase58(lost.subarray(1, 65)))
    assert.deepEqual(
      await server.refusal('sendTransaction', base64(failing), { encoding: 'base64', minContextSlot: FAR }),
      [-32016, 'Minimum context slot has not been reached'],
    )
    assert.deepEqual(await server.refusal('sendTransaction', base64(failing), { encoding: 'json' }), [
      -32602,
      'unsupported encoding: json. Supported encodings: base58, base64',
    ])
    assert.equal((await server.refusal('sendTransaction', base64(failing), { preflightCommitment: 'soon' }))[0], -32602)
  })

  it('simulateTransaction', async () => {
    const wire = wallet.sign([wallet.transfer(SOL, 56)])
    const run = await simulate(wire)
    assert.equal(run.err, null)
    assert.equal(run['fee'], 5000)
    assert.equal(run.unitsConsumed, 150)
    assert.equal(run['replacementBlockhash'], null)
    assert.equal(run['innerInstructions'], null)
    assert.deepEqual(run['loadedAddresses'], { writable: [], readonly: [] })
    const [pre, post] = [run['preBalances'] as number[], run['postBalances'] as number[]]
    assert.equal((pre[0] ?? 0) - (post[0] ?? 0), SOL + 5000)
    assert.equal(post[1], SOL)
    assert.ok((run['loadedAccountsDataSize'] as number) > 0)
    assert.equal(
      (await server.call<Context<number>>('getBalance', key(56).toBase58(), { commitment: 'processed' })).value,
      0,
    )

    const replaced = await simulate(wallet.sign([wallet.transfer(1)], wallet.payer, key(9).toBase58()), {
      replaceRecentBlockhash: true,
    })
    assert.notEqual(replaced['replacementBlockhash'], null)
    assert.equal(
      (await simulate(wallet.sign([wallet.transfer(1)], wallet.payer, key(9).toBase58()))).err,
      'BlockhashNotFound',
    )

    const forged = Buffer.from(wire).fill(0, 1, 65)
    assert.equal((await simulate(forged)).err, null)
    assert.equal((await simulate(forged, { sigVerify: true })).err, 'SignatureFailure')
    assert.deepEqual(
      await server.refusal('simulateTransaction', base64(wire), {
        encoding: 'base64',
        sigVerify: true,
        replaceRecentBlockhash: true,
      }),
      [-32602, 'sigVerify may not be used with replaceRecentBlockhash'],
    )
  })

  it('simulateTransaction returns accounts as they would be', async () => {
    const wire = wallet.sign([wallet.transfer(SOL, 57)])
    const addresses = [key(57).toBase58(), wallet.payer.publicKey.toBase58()]
    const { accounts } = (await simulate(wire, { accounts: { addresses, encoding: 'jsonParsed' } })) as unknown as {
      accounts: { lamports: number }[]
    }
    assert.equal(accounts[0]?.lamports, SOL)
    assert.equal(accounts.length, 2)
    const failed = await simulate(wallet.sign([wallet.transfer(20_000 * SOL)]), { accounts: { addresses } })
    assert.deepEqual(failed.accounts, [null, null])
    const ask = (config: object) =>
      server.refusal('simulateTransaction', base64(wire), { encoding: 'base64', accounts: config })
    assert.deepEqual(await ask({ addresses, encoding: 'base58' }), [-32602, 'base58 encoding not supported'])
    assert.deepEqual(await ask({ addresses: [...addresses, ...addresses] }), [
      -32602,
      'Too many accounts provided; max 3',
    ])
    assert.deepEqual(await ask({ encoding: 'base64' }), [-32602, 'Invalid params: missing field `addresses`.'])
    assert.deepEqual(await ask({ addresses: ['x'] }), [-32602, 'Invalid param: WrongSize'])
  })

  it('simulateTransaction returns empty accounts for those that it closes and those that do not exist', async () => {
    const closed = web3.Keypair.fromSeed(new Uint8Array(32).fill(3))
    await server.call('requestAirdrop', closed.publicKey.toBase58(), SOL)
    await server.pass(1)
    const all = wallet.transfer(SOL - 5000, 57, closed)
    all.keys.push({ pubkey: key(97), isSigner: false, isWritable: false })
    const addresses = [closed.publicKey, key(97), key(96)].map((each) => each.toBase58())
    const { err, accounts } = await simulate(wallet.sign([all], closed), { accounts: { addresses } })
    const empty = {
      data: ['', 'base64'],
      executable: false,
      lamports: 0,
      owner: web3.SystemProgram.programId.toBase58(),
      rentEpoch: 18446744073709551615n,
      space: 0,
    }
    assert.equal(err, null)
    assert.deepEqual(accounts, [empty, empty, null], 'the last is not an account of the transaction')
  })

  it('a missing lookup table makes a transaction invalid', async () => {
    const table = new web3.AddressLookupTableAccount({
      key: key(77),
      state: {
        deactivationSlot: 18446744073709551615n,
        lastExtendedSlot: 0,
        lastExtendedSlotStartIndex: 0,
        addresses: [key(60)],
      },
    })
    const wire = wallet.signV0([wallet.transfer(1, 60)], [table])
    const refused = [-32602, "invalid transaction: Transaction loads an address table account that doesn't exist"]
    for (const [method, config] of [
      ['sendTransaction', {}],
      ['sendTransaction', { skipPreflight: true }],
      ['simulateTransaction', {}],
    ] as const) {
      assert.deepEqual(await server.refusal(method, base64(wire), { encoding: 'base64', ...config }), refused)
    }
    // Tables are resolved before the accounts are counted.
    const missing = new web3.AddressLookupTableAccount({ key: key(77), state: TABLE.state })
    const many = wallet.signV0([locking(127)], [missing])
    assert.deepEqual(await server.refusal('sendTransaction', base64(many), { encoding: 'base64' }), refused)
  })

  /** A transfer that locks the payer, the System program and this many accounts of the table. */
  function locking(tableKeys: number): web3.TransactionInstruction {
    const instruction = web3.SystemProgram.transfer({
      fromPubkey: wallet.payer.publicKey,
      toPubkey: TABLE_KEYS[0] as web3.PublicKey,
      lamports: SOL,
    })
    for (const pubkey of TABLE_KEYS.slice(1, tableKeys))
      instruction.keys.push({ pubkey, isSigner: false, isWritable: false })
    return instruction
  }

  it('a transaction that locks too many accounts is refused in preflight, and sent without it', async () => {
    const wire = wallet.signV0([locking(127)], [TABLE])
    assert.deepEqual(await server.refusal('sendTransaction', base64(wire), { encoding: 'base64' }), [
      -32002,
      'Transaction simulation failed: Transaction locked too many accounts',
    ])
    const run = await simulate(wire)
    assert.deepEqual([run.err, run.logs, run['fee']], ['TooManyAccountLocks', [], null])
    const stale = Buffer.from(wire).fill(9, 65 + 4 + 1 + 64, 65 + 4 + 1 + 96)
    assert.equal((await simulate(stale)).err, 'TooManyAccountLocks', 'before the age of its blockhash')
    const signature = await wallet.send(wire, { skipPreflight: true })
    assert.equal(signature, encodeBase58(wire.subarray(1, 65)))
    await server.pass(1)
    const { value } = await server.call<Context<unknown[]>>('getSignatureStatuses', [signature])
    assert.deepEqual(value, [null])

    // The engine has the limit of mainnet, 64.
    assert.equal((await simulate(wallet.signV0([locking(63)], [TABLE]))).err, 'TooManyAccountLocks')
    const most = wallet.signV0([locking(62)], [TABLE])
    assert.equal((await simulate(most)).err, null)
    assert.equal(await wallet.send(most), encodeBase58(most.subarray(1, 65)))
  })
})
