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
import { MEMO_PROGRAM } from '../../chain/addresses.ts'

const FAR = 9223372036854775807n

describe('methods that read transactions', () => {
  let server: TestServer
  let wallet: RpcWallet
  before(async () => {
    server = await startTestServer({ commitment: { confirmedSlots: 1, finalizedSlots: 3 } })
    wallet = await openRpcWallet(server)
  })
  after(() => server[Symbol.asyncDispose]())

  it('getSignatureStatuses', async () => {
    const signature = await wallet.send(wallet.sign([wallet.transfer(SOL, 58)]))
    type Status = { slot: number; confirmations: number | null; confirmationStatus: string } | null
    const status = async () =>
      (await server.call<Context<Status[]>>('getSignatureStatuses', [signature])).value[0] as Status
    assert.equal(await status(), null)
    const seen: unknown[] = []
    for (let slot = 0; slot < 4; slot++) {
      await server.pass(1)
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
      (await server.call<Context<Status[]>>('getSignatureStatuses', [unknown], { searchTransactionHistory: true }))
        .value,
      [null],
    )
    const many = Array.from({ length: 257 }, () => unknown)
    assert.deepEqual(await server.refusal('getSignatureStatuses', many), [-32602, 'Too many inputs provided; max 256'])
    assert.deepEqual(await server.refusal('getSignatureStatuses', ['x']), [-32602, 'Invalid param: WrongSize'])
    assert.deepEqual(await server.refusal('getSignatureStatuses', ['0'.repeat(64)]), [-32602, 'Invalid param: Invalid'])
  })

  it('getSignaturesForAddress pages newest first', async () => {
    const address = key(59).toBase58()
    const sent: string[] = []
    for (let index = 0; index < 5; index++) {
      sent.push(await wallet.send(wallet.sign([wallet.transfer(SOL + index, 59), wallet.memo(`no ${index}`)])))
      if (index % 2 === 1) await server.pass(1)
    }
    await server.pass(4)
    type Listed = {
      signature: string
      slot: number
      err: unknown
      memo: string | null
      blockTime: number
      confirmationStatus: string
    }
    const list = async (config: object = {}) =>
      (await server.call<Listed[]>('getSignaturesForAddress', address, config)).map(({ signature }) => signature)
    const newest = [...sent].reverse()
    assert.deepEqual(await list(), newest)
    assert.deepEqual(await list({ limit: 2 }), newest.slice(0, 2))
    assert.deepEqual(await list({ before: newest[1] }), newest.slice(2))
    assert.deepEqual(await list({ until: newest[3] }), newest.slice(0, 3))
    assert.deepEqual(await list({ before: newest[0], until: newest[3], limit: 1 }), [newest[1]])
    assert.deepEqual(await list({ before: encodeBase58(new Uint8Array(64).fill(6)) }), [])
    assert.deepEqual(await list({ until: encodeBase58(new Uint8Array(64).fill(6)) }), newest)
    const unconfirmed = await wallet.send(wallet.sign([wallet.transfer(SOL, 59)]))
    await server.pass(1)
    assert.deepEqual(
      await list({ until: unconfirmed }),
      newest,
      'a client that saw it as processed asks for older ones',
    )
    assert.deepEqual(await list({ before: unconfirmed }), [])
    const [latest] = await server.call<Listed[]>('getSignaturesForAddress', address, { limit: 1 })
    assert.equal(latest?.memo, '[4] no 4')
    assert.equal(latest?.confirmationStatus, 'finalized')
    assert.equal(latest?.err, null)
    assert.equal(latest?.blockTime, server.chain.block(latest?.slot ?? 0)?.time)
    assert.deepEqual(await server.call('getSignaturesForAddress', key(98).toBase58()), [])
    for (const limit of [0, 1001]) {
      assert.deepEqual(await server.refusal('getSignaturesForAddress', address, { limit }), [
        -32602,
        'Invalid limit; max 1000',
      ])
    }
    assert.deepEqual(await server.refusal('getSignaturesForAddress', address, { commitment: 'processed' }), [
      -32602,
      'Method does not support commitment below `confirmed`',
    ])
    assert.equal((await server.refusal('getSignaturesForAddress', address, { minContextSlot: FAR }))[0], -32016)
    assert.equal((await server.refusal('getSignaturesForAddress', address, { before: 'x' }))[0], -32602)
  })

  it('describes memos that are not UTF-8', async () => {
    const address = wallet.payer.publicKey.toBase58()
    // The program fails on such a memo, but the transaction lands.
    await wallet.send(wallet.sign([wallet.memo(new Uint8Array([0xff])), wallet.memo('two')]), { skipPreflight: true })
    await server.pass(4)
    const [latest] = await server.call<{ memo: string }[]>('getSignaturesForAddress', address, { limit: 1 })
    assert.equal(latest?.memo, '[1] (unparseable); [3] two')
  })

  it('getTransaction in every encoding', async () => {
    const wire = wallet.sign([wallet.transfer(SOL, 61), wallet.memo('hello')])
    const signature = await wallet.send(wire)
    assert.equal(await server.call('getTransaction', signature), null)
    await server.pass(2)
    assert.equal(await server.call('getTransaction', signature), null)
    assert.notEqual(await server.call('getTransaction', signature, { commitment: 'confirmed' }), null)
    await server.pass(2)
    type Shown = {
      slot: number
      transaction: unknown
      meta: Record<string, unknown>
      version?: unknown
      blockTime: number
    }
    const get = (config?: object | string) =>
      server.call<Shown>('getTransaction', signature, ...(config ? [config] : []))
    const plain = await get()
    assert.deepEqual(Object.keys(plain), ['slot', 'transaction', 'meta', 'blockTime', 'transactionIndex'])
    assert.deepEqual(plain.transaction, {
      signatures: [signature],
      message: {
        header: { numRequiredSignatures: 1, numReadonlySignedAccounts: 0, numReadonlyUnsignedAccounts: 2 },
        accountKeys: [
          wallet.payer.publicKey.toBase58(),
          key(61).toBase58(),
          web3.SystemProgram.programId.toBase58(),
          MEMO_PROGRAM,
        ],
        recentBlockhash: web3.Transaction.from(wire).recentBlockhash,
        instructions: [
          { programIdIndex: 2, accounts: [0, 1], data: encodeBase58(wallet.transfer(SOL, 61).data), stackHeight: 1 },
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
      programId: MEMO_PROGRAM,
      parsed: 'hello',
      stackHeight: 1,
    })

    assert.deepEqual(await server.refusal('getTransaction', 'x'), [-32602, 'Invalid param: WrongSize'])
    assert.equal((await server.refusal('getTransaction', signature, { commitment: 'processed' }))[0], -32602)
    assert.equal((await server.refusal('getTransaction', signature, 'hex'))[0], -32602)
  })

  it('getTransaction and getBlock require maxSupportedTransactionVersion for version 0', async () => {
    const signature = await wallet.send(wallet.signV0([wallet.transfer(SOL, 62)]))
    await server.pass(4)
    const unsupported =
      'Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": 0'
    assert.deepEqual(await server.refusal('getTransaction', signature), [-32015, unsupported])
    const shown = await server.call<{ slot: number; version: number; transaction: { message: object } }>(
      'getTransaction',
      signature,
      {
        maxSupportedTransactionVersion: 0,
      },
    )
    assert.equal(shown.version, 0)
    assert.deepEqual((shown.transaction.message as { addressTableLookups: unknown }).addressTableLookups, [])
    assert.deepEqual(await server.refusal('getBlock', shown.slot), [-32015, unsupported])

    type Shown = {
      transactions?: { transaction: unknown; meta: object; version?: unknown }[]
      signatures?: string[]
      rewards?: unknown[]
    }
    const block = (config: object) =>
      server.call<Shown>('getBlock', shown.slot, { maxSupportedTransactionVersion: 0, ...config })
    const full = await block({ encoding: 'jsonParsed' })
    assert.equal(full.transactions?.[0]?.version, 0)
    assert.deepEqual(full.rewards, [
      {
        pubkey: server.chain.identity,
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
        { pubkey: wallet.payer.publicKey.toBase58(), writable: true, signer: true, source: 'transaction' },
        { pubkey: key(62).toBase58(), writable: true, signer: false, source: 'transaction' },
        { pubkey: web3.SystemProgram.programId.toBase58(), writable: false, signer: false, source: 'transaction' },
      ],
    })
    assert.ok(!('logMessages' in (accounts.transactions?.[0]?.meta ?? {})))
    assert.deepEqual(await server.refusal('getBlock', shown.slot, { maxSupportedTransactionVersion: 256 }), [
      -32602,
      'Invalid params: data did not match any variant of untagged enum RpcEncodingConfigWrapper.',
    ])
  })
})
