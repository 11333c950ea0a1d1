import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { after, before, describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import { encodeBase58 } from '../../solana/base58.ts'
import { MEMO_V3 } from './program-ids.ts'
import { startTestDoor, type TestDoor } from './testing.ts'

type Context<T> = { context: { slot: number }; value: T }
type Blockhash = { blockhash: string; lastValidBlockHeight: number }
type Simulated = Record<string, unknown> & { err: unknown; logs: string[]; unitsConsumed: number; accounts: unknown }

const FAR = 9223372036854775807n
const key = (fill: number) => new web3.PublicKey(new Uint8Array(32).fill(fill))
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const SOL = 1_000_000_000

describe('transaction methods', () => {
  let door: TestDoor
  const payer = web3.Keypair.fromSeed(new Uint8Array(32).fill(1))
  const poor = web3.Keypair.fromSeed(new Uint8Array(32).fill(2))

  before(async () => {
    door = await startTestDoor({ commitment: { confirmedSlots: 1, finalizedSlots: 3 } })
    await door.pass(1)
    await door.call('requestAirdrop', payer.publicKey.toBase58(), 100 * SOL)
    await door.pass(4)
  })
  after(() => door[Symbol.asyncDispose]())

  async function recent(): Promise<string> {
    return (await door.call<Context<Blockhash>>('getLatestBlockhash', { commitment: 'processed' })).value.blockhash
  }

  async function sign(
    instructions: web3.TransactionInstruction[],
    signer = payer,
    blockhash?: string,
  ): Promise<Buffer> {
    const transaction = new web3.Transaction({
      feePayer: signer.publicKey,
      recentBlockhash: blockhash ?? (await recent()),
    })
    transaction.add(...instructions)
    transaction.sign(signer)
    return transaction.serialize({ verifySignatures: false })
  }

  const transfer = (lamports: number, to = 50, from = payer) =>
    web3.SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: key(to), lamports })
  const memo = (text: string | Uint8Array) =>
    new web3.TransactionInstruction({
      programId: new web3.PublicKey(MEMO_V3),
      keys: [],
      data: Buffer.from(text as string),
    })
  const send = (wire: Uint8Array, config: object = {}) =>
    door.call<string>('sendTransaction', base64(wire), { encoding: 'base64', ...config })
  const simulate = async (wire: Uint8Array, config: object = {}) =>
    (
      await door.call<Context<Simulated>>('simulateTransaction', base64(wire), {
        encoding: 'base64',
        commitment: 'processed',
        ...config,
      })
    ).value

  it('getLatestBlockhash, isBlockhashValid', async () => {
    const { value } = await door.call<Context<Blockhash>>('getLatestBlockhash', { commitment: 'processed' })
    assert.equal(value.lastValidBlockHeight, door.chain.slot('processed') + 150)
    const valid = async (hash: string) =>
      (await door.call<Context<boolean>>('isBlockhashValid', hash, { commitment: 'processed' })).value
    assert.equal(await valid(value.blockhash), true)
    assert.equal(await valid(key(9).toBase58()), false)
    assert.deepEqual(await door.refusal('isBlockhashValid', 'x'), [-32602, 'WrongSize'])
    assert.deepEqual(await door.refusal('isBlockhashValid', value.blockhash, { minContextSlot: FAR }), [
      -32016,
      'Minimum context slot has not been reached',
    ])
  })

  it('getFeeForMessage', async () => {
    const fee = async (instructions: web3.TransactionInstruction[], blockhash?: string) => {
      const transaction = new web3.Transaction({
        feePayer: payer.publicKey,
        recentBlockhash: blockhash ?? (await recent()),
      })
      const message = base64(transaction.add(...instructions).serializeMessage())
      return (await door.call<Context<number | null>>('getFeeForMessage', message, { commitment: 'processed' })).value
    }
    assert.equal(await fee([transfer(1)]), 5000)
    const priced = [
      web3.ComputeBudgetProgram.setComputeUnitLimit({ units: 1000 }),
      web3.ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 5_000_000 }),
    ]
    assert.equal(await fee([...priced, transfer(1)]), 5000 + 5000)
    assert.equal(await fee([transfer(1)], key(9).toBase58()), null)
    assert.equal((await door.refusal('getFeeForMessage', 'someInvalidMessage'))[0], -32602)
  })

  it('getRecentPrioritizationFees', async () => {
    await send(await sign([web3.ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 777 }), transfer(SOL, 51)]))
    await door.pass(1)
    const slot = door.chain.slot('processed')
    type Fee = { slot: number; prioritizationFee: number }
    const at = async (...addresses: string[]) =>
      (await door.call<Fee[]>('getRecentPrioritizationFees', addresses)).find((fee) => fee.slot === slot)
        ?.prioritizationFee
    assert.equal(await at(), 777)
    assert.equal(await at(key(51).toBase58()), 777)
    const many = Array.from({ length: 129 }, () => key(51).toBase58())
    assert.deepEqual(await door.refusal('getRecentPrioritizationFees', many), [
      -32602,
      'Too many inputs provided; max 128',
    ])
    assert.deepEqual(await door.refusal('getRecentPrioritizationFees', ['x']), [-32602, 'Invalid param: WrongSize'])
  })

  it('requestAirdrop', async () => {
    const address = key(52).toBase58()
    const first = await door.call<string>('requestAirdrop', address, SOL)
    const second = await door.call<string>('requestAirdrop', address, SOL)
    assert.notEqual(first, second)
    await door.pass(1)
    assert.equal((await door.call<Context<number>>('getBalance', address, { commitment: 'processed' })).value, 2 * SOL)
    assert.deepEqual(await door.refusal('requestAirdrop', 'x', 1), [-32602, 'Invalid param: WrongSize'])
    assert.deepEqual(await door.refusal('requestAirdrop', address), [
      -32602,
      '`params` should have at least 2 argument(s)',
    ])
    assert.deepEqual(await door.refusal('requestAirdrop', address, 1, { recentBlockhash: 'x' }), [
      -32602,
      'Invalid param: WrongSize',
    ])
  })

  it('sendTransaction lands, and tells its signature', async () => {
    const wire = await sign([transfer(SOL, 53)])
    const signature = await send(wire)
    assert.equal(signature, encodeBase58(wire.subarray(1, 65)))
    const again = await sign([transfer(SOL, 54)])
    assert.equal(await door.call('sendTransaction', encodeBase58(again)), encodeBase58(again.subarray(1, 65)))
    await door.pass(1)
    assert.equal(
      (await door.call<Context<number>>('getBalance', key(53).toBase58(), { commitment: 'processed' })).value,
      SOL,
    )
  })

  it('sendTransaction refuses in preflight, with the simulation as its data', async () => {
    const preflight = async (wire: Uint8Array) => {
      const { error } = await door.ask('sendTransaction', base64(wire), {
        encoding: 'base64',
        preflightCommitment: 'processed',
      })
      assert.equal(error?.code, -32002)
      return { message: error.message, data: error.data as Simulated }
    }
    const forged = await sign([transfer(1)])
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

    const unknown = await preflight(await sign([transfer(1)], payer, key(9).toBase58()))
    assert.equal(unknown.message, 'Transaction simulation failed: Blockhash not found')
    assert.equal(unknown.data.err, 'BlockhashNotFound')
    const broke = await preflight(await sign([transfer(1, 50, poor)], poor))
    assert.equal(
      broke.message,
      'Transaction simulation failed: Attempt to debit an account but found no record of a prior credit.',
    )
    const tooMuch = await preflight(await sign([transfer(10_000 * SOL)]))
    assert.equal(
      tooMuch.message,
      'Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1',
    )
    assert.deepEqual(tooMuch.data.err, { InstructionError: [0, { Custom: 1 }] })
    assert.ok(tooMuch.data.logs.some((line) => line.includes('insufficient lamports')))
    const landed = await sign([transfer(SOL, 55)])
    await send(landed)
    assert.equal(
      (await preflight(landed)).message,
      'Transaction simulation failed: This transaction has already been processed',
    )
  })

  it('sendTransaction without preflight takes what it cannot land, too', async () => {
    const failing = await sign([transfer(20_000 * SOL)])
    const signature = await send(failing, { skipPreflight: true })
    await door.pass(1)
    const { value } = await door.call<Context<{ err: unknown; status: unknown }[]>>('getSignatureStatuses', [signature])
    assert.deepEqual(value[0]?.err, { InstructionError: [0, { Custom: 1 }] })
    assert.deepEqual(value[0]?.status, { Err: { InstructionError: [0, { Custom: 1 }] } })
    const lost = await sign([transfer(1)], payer, key(9).toBase58())
    assert.equal(await send(lost, { skipPreflight: true }), encodeBase58(lost.subarray(1, 65)))
    assert.deepEqual(
      await door.refusal('sendTransaction', base64(failing), { encoding: 'base64', minContextSlot: FAR }),
      [-32016, 'Minimum context slot has not been reached'],
    )
    assert.deepEqual(await door.refusal('sendTransaction', base64(failing), { encoding: 'json' }), [
      -32602,
      'unsupported encoding: json. Supported encodings: base58, base64',
    ])
    assert.equal((await door.refusal('sendTransaction', base64(failing), { preflightCommitment: 'soon' }))[0], -32602)
  })

  it('simulateTransaction', async () => {
    const wire = await sign([transfer(SOL, 56)])
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
      (await door.call<Context<number>>('getBalance', key(56).toBase58(), { commitment: 'processed' })).value,
      0,
    )

    const replaced = await simulate(await sign([transfer(1)], payer, key(9).toBase58()), {
      replaceRecentBlockhash: true,
    })
    assert.notEqual(replaced['replacementBlockhash'], null)
    assert.equal((await simulate(await sign([transfer(1)], payer, key(9).toBase58()))).err, 'BlockhashNotFound')

    const forged = Buffer.from(wire).fill(0, 1, 65)
    assert.equal((await simulate(forged)).err, null)
    assert.equal((await simulate(forged, { sigVerify: true })).err, 'SignatureFailure')
    assert.deepEqual(
      await door.refusal('simulateTransaction', base64(wire), {
        encoding: 'base64',
        sigVerify: true,
        replaceRecentBlockhash: true,
      }),
      [-32602, 'sigVerify may not be used with replaceRecentBlockhash'],
    )
  })

  it('simulateTransaction shows accounts as they would be', async () => {
    const wire = await sign([transfer(SOL, 57)])
    const addresses = [key(57).toBase58(), payer.publicKey.toBase58()]
    const { accounts } = (await simulate(wire, { accounts: { addresses, encoding: 'jsonParsed' } })) as unknown as {
      accounts: { lamports: number }[]
    }
    assert.equal(accounts[0]?.lamports, SOL)
    assert.equal(accounts.length, 2)
    const failed = await simulate(await sign([transfer(20_000 * SOL)]), { accounts: { addresses } })
    assert.deepEqual(failed.accounts, [null, null])
    const ask = (config: object) =>
      door.refusal('simulateTransaction', base64(wire), { encoding: 'base64', accounts: config })
    assert.deepEqual(await ask({ addresses, encoding: 'base58' }), [-32602, 'base58 encoding not supported'])
    assert.deepEqual(await ask({ addresses: [...addresses, ...addresses] }), [
      -32602,
      'Too many accounts provided; max 3',
    ])
    assert.deepEqual(await ask({ encoding: 'base64' }), [-32602, 'Invalid params: missing field `addresses`.'])
    assert.deepEqual(await ask({ addresses: ['x'] }), [-32602, 'Invalid param: WrongSize'])
  })

  it('a lookup table that is not there makes no valid transaction', async () => {
    const table = new web3.AddressLookupTableAccount({
      key: key(77),
      state: {
        deactivationSlot: 18446744073709551615n,
        lastExtendedSlot: 0,
        lastExtendedSlotStartIndex: 0,
        addresses: [key(60)],
      },
    })
    const message = new web3.TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: await recent(),
      instructions: [transfer(1, 60)],
    })
    const transaction = new web3.VersionedTransaction(message.compileToV0Message([table]))
    transaction.sign([payer])
    const refused = [-32602, "invalid transaction: Transaction loads an address table account that doesn't exist"]
    for (const [method, config] of [
      ['sendTransaction', {}],
      ['sendTransaction', { skipPreflight: true }],
      ['simulateTransaction', {}],
    ] as const) {
      assert.deepEqual(
        await door.refusal(method, base64(transaction.serialize()), { encoding: 'base64', ...config }),
        refused,
      )
    }
  })

  it('getSignatureStatuses', async () => {
    const signature = await send(await sign([transfer(SOL, 58)]))
    type Status = { slot: number; confirmations: number | null; confirmationStatus: string } | null
    const status = async () =>
      (await door.call<Context<Status[]>>('getSignatureStatuses', [signature])).value[0] as Status
    assert.equal(await status(), null)
    const seen: unknown[] = []
    for (let slot = 0; slot < 4; slot++) {
      await door.pass(1)
      const now = await status()
      seen.push([now?.confirmations, now?.confirmationStatus])
    }
    assert.deepEqual(seen, [
      [0, 'processed'],
      [1, 'confirmed'],
      [2, 'confirmed'],
      [null, 'finalized'],
    ])
    const unknown = encodeBase58(new Uint8Array(64).fill(5))
    assert.deepEqual(
      (await door.call<Context<Status[]>>('getSignatureStatuses', [unknown], { searchTransactionHistory: true })).value,
      [null],
    )
    const many = Array.from({ length: 257 }, () => unknown)
    assert.deepEqual(await door.refusal('getSignatureStatuses', many), [-32602, 'Too many inputs provided; max 256'])
    assert.deepEqual(await door.refusal('getSignatureStatuses', ['x']), [-32602, 'Invalid param: WrongSize'])
    assert.deepEqual(await door.refusal('getSignatureStatuses', ['0'.repeat(64)]), [-32602, 'Invalid param: Invalid'])
  })

  it('getSignaturesForAddress pages newest first', async () => {
    const address = key(59).toBase58()
    const sent: string[] = []
    for (let index = 0; index < 5; index++) {
      sent.push(await send(await sign([transfer(SOL + index, 59), memo(`no ${index}`)])))
      if (index % 2 === 1) await door.pass(1)
    }
    await door.pass(4)
    type Listed = {
      signature: string
      slot: number
      err: unknown
      memo: string | null
      blockTime: number
      confirmationStatus: string
    }
    const list = async (config: object = {}) =>
      (await door.call<Listed[]>('getSignaturesForAddress', address, config)).map(({ signature }) => signature)
    const newest = [...sent].reverse()
    assert.deepEqual(await list(), newest)
    assert.deepEqual(await list({ limit: 2 }), newest.slice(0, 2))
    assert.deepEqual(await list({ before: newest[1] }), newest.slice(2))
    assert.deepEqual(await list({ until: newest[3] }), newest.slice(0, 3))
    assert.deepEqual(await list({ before: newest[0], until: newest[3], limit: 1 }), [newest[1]])
    assert.deepEqual(await list({ before: encodeBase58(new Uint8Array(64).fill(6)) }), [])
    const [latest] = await door.call<Listed[]>('getSignaturesForAddress', address, { limit: 1 })
    assert.equal(latest?.memo, '[4] no 4')
    assert.equal(latest?.confirmationStatus, 'finalized')
    assert.equal(latest?.err, null)
    assert.equal(latest?.blockTime, door.chain.block(latest?.slot ?? 0)?.time)
    assert.deepEqual(await door.call('getSignaturesForAddress', key(98).toBase58()), [])
    for (const limit of [0, 1001]) {
      assert.deepEqual(await door.refusal('getSignaturesForAddress', address, { limit }), [
        -32602,
        'Invalid limit; max 1000',
      ])
    }
    assert.deepEqual(await door.refusal('getSignaturesForAddress', address, { commitment: 'processed' }), [
      -32602,
      'Method does not support commitment below `confirmed`',
    ])
    assert.equal((await door.refusal('getSignaturesForAddress', address, { minContextSlot: FAR }))[0], -32016)
    assert.equal((await door.refusal('getSignaturesForAddress', address, { before: 'x' }))[0], -32602)
  })

  it('shows memos that are no text as such', async () => {
    const address = payer.publicKey.toBase58()
    // The program refuses such a memo, the ledger keeps it.
    await send(await sign([memo(new Uint8Array([0xff])), memo('two')]), { skipPreflight: true })
    await door.pass(4)
    const [latest] = await door.call<{ memo: string }[]>('getSignaturesForAddress', address, { limit: 1 })
    assert.equal(latest?.memo, '[1] (unparseable); [3] two')
  })

  it('getTransaction in every encoding', async () => {
    const wire = await sign([transfer(SOL, 61), memo('hello')])
    const signature = await send(wire)
    assert.equal(await door.call('getTransaction', signature), null)
    await door.pass(2)
    assert.equal(await door.call('getTransaction', signature), null)
    assert.notEqual(await door.call('getTransaction', signature, { commitment: 'confirmed' }), null)
    await door.pass(2)
    type Shown = {
      slot: number
      transaction: unknown
      meta: Record<string, unknown>
      version?: unknown
      blockTime: number
    }
    const get = (config?: object | string) => door.call<Shown>('getTransaction', signature, ...(config ? [config] : []))
    const plain = await get()
    assert.deepEqual(Object.keys(plain), ['slot', 'transaction', 'meta', 'blockTime', 'transactionIndex'])
    assert.deepEqual(plain.transaction, {
      signatures: [signature],
      message: {
        header: { numRequiredSignatures: 1, numReadonlySignedAccounts: 0, numReadonlyUnsignedAccounts: 2 },
        accountKeys: [payer.publicKey.toBase58(), key(61).toBase58(), web3.SystemProgram.programId.toBase58(), MEMO_V3],
        recentBlockhash: web3.Transaction.from(wire).recentBlockhash,
        instructions: [
          { programIdIndex: 2, accounts: [0, 1], data: encodeBase58(transfer(SOL, 61).data), stackHeight: 1 },
          { programIdIndex: 3, accounts: [], data: encodeBase58(Buffer.from('hello')), stackHeight: 1 },
        ],
      },
    })
    assert.deepEqual(plain.meta['status'], { Ok: null })
    assert.deepEqual(plain.meta['rewards'], [])
    assert.deepEqual(plain.meta['loadedAddresses'], { writable: [], readonly: [] })
    assert.deepEqual((await get('base64')).transaction, [base64(wire), 'base64'])
    assert.deepEqual((await get({ encoding: 'base58' })).transaction, [encodeBase58(wire), 'base58'])
    assert.equal((await get({ encoding: 'binary' })).transaction, encodeBase58(wire))
    const parsed = await get({ encoding: 'jsonParsed', maxSupportedTransactionVersion: 0 })
    assert.equal(parsed.version, 'legacy')
    assert.equal(parsed.meta['loadedAddresses'], undefined)
    const { message } = parsed.transaction as { message: { accountKeys: unknown[]; instructions: unknown[] } }
    assert.deepEqual(message.accountKeys[1], {
      pubkey: key(61).toBase58(),
      writable: true,
      signer: false,
      source: 'transaction',
    })
    assert.deepEqual(message.instructions[1], {
      program: 'spl-memo',
      programId: MEMO_V3,
      parsed: 'hello',
      stackHeight: 1,
    })

    assert.deepEqual(await door.refusal('getTransaction', 'x'), [-32602, 'Invalid param: WrongSize'])
    assert.equal((await door.refusal('getTransaction', signature, { commitment: 'processed' }))[0], -32602)
    assert.equal((await door.refusal('getTransaction', signature, 'hex'))[0], -32602)
  })

  it('getTransaction and getBlock ask for a client that knows version 0', async () => {
    const message = new web3.TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: await recent(),
      instructions: [transfer(SOL, 62)],
    })
    const transaction = new web3.VersionedTransaction(message.compileToV0Message())
    transaction.sign([payer])
    const signature = await send(transaction.serialize())
    await door.pass(4)
    const unsupported =
      'Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": 0'
    assert.deepEqual(await door.refusal('getTransaction', signature), [-32015, unsupported])
    const shown = await door.call<{ slot: number; version: number; transaction: { message: object } }>(
      'getTransaction',
      signature,
      {
        maxSupportedTransactionVersion: 0,
      },
    )
    assert.equal(shown.version, 0)
    assert.deepEqual((shown.transaction.message as { addressTableLookups: unknown }).addressTableLookups, [])
    assert.deepEqual(await door.refusal('getBlock', shown.slot), [-32015, unsupported])

    type Shown = {
      transactions?: { transaction: unknown; meta: object; version?: unknown }[]
      signatures?: string[]
      rewards?: unknown[]
    }
    const block = (config: object) =>
      door.call<Shown>('getBlock', shown.slot, { maxSupportedTransactionVersion: 0, ...config })
    const full = await block({ encoding: 'jsonParsed' })
    assert.equal(full.transactions?.[0]?.version, 0)
    assert.deepEqual(full.rewards, [
      {
        pubkey: door.chain.identity,
        lamports: 2500,
        postBalance: full.rewards && (full.rewards[0] as { postBalance: number }).postBalance,
        rewardType: 'Fee',
        commission: null,
      },
    ])
    assert.deepEqual(await block({ transactionDetails: 'signatures', rewards: false }), {
      ...(await block({ transactionDetails: 'none', rewards: false })),
      signatures: [signature],
    })
    const accounts = await block({ transactionDetails: 'accounts' })
    assert.deepEqual(accounts.transactions?.[0]?.transaction, {
      signatures: [signature],
      accountKeys: [
        { pubkey: payer.publicKey.toBase58(), writable: true, signer: true, source: 'transaction' },
        { pubkey: key(62).toBase58(), writable: true, signer: false, source: 'transaction' },
        { pubkey: web3.SystemProgram.programId.toBase58(), writable: false, signer: false, source: 'transaction' },
      ],
    })
    assert.ok(!('logMessages' in (accounts.transactions?.[0]?.meta ?? {})))
    assert.deepEqual(await door.refusal('getBlock', shown.slot, { maxSupportedTransactionVersion: 256 }), [
      -32602,
      'Invalid params: data did not match any variant of untagged enum RpcEncodingConfigWrapper.',
    ])
  })
})
