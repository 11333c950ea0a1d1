import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  ComputeBudgetProgram,
  Ed25519Program,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionInstruction,
} from '@solana/web3.js'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { packAccounts } from '../chain/account-codec.ts'
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../chain/addresses.ts'
import { Engine } from './engine.ts'
import type { ExecuteReply, ForkReply, SimulateReply } from './protocol.ts'

const PARENT = new Uint8Array(32).fill(9)
const blockhash = new PublicKey(PARENT).toBase58()
const payer = Keypair.fromSeed(new Uint8Array(32).fill(1))
const other = Keypair.fromSeed(new Uint8Array(32).fill(2))
const MEMO = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'
const MEMO_V4 = 'Memo4c2pN8afCj432Lb7RMVKi9PbQnnW7ewFFaV3oAH'

function openEngine() {
  const engine = new Engine()
  const slot = { slot: 5, epoch: 0, epochStartTimestamp: 0, unixTimestamp: 1_800_000_000, slotsPerEpoch: 432_000 }
  engine.handle({ op: 'open', slot: { ...slot, slotHashes: [{ slot: 4, hash: PARENT }], blockhashes: [PARENT] } })
  engine.handle({ op: 'load', accounts: packAccounts([[payer.publicKey.toBytes(), wallet(10n ** 12n)]]) })
  const execute = (wire: Uint8Array) => engine.handle({ op: 'execute', wire, nonce: false }) as ExecuteReply
  return { engine, execute }
}

function wallet(lamports: bigint) {
  return { lamports, owner: new Uint8Array(32), data: new Uint8Array(0), executable: false }
}

function build(...instructions: TransactionInstruction[]): Uint8Array {
  const transaction = new Transaction({ feePayer: payer.publicKey, blockhash, lastValidBlockHeight: 1 })
  transaction.add(...instructions)
  transaction.sign(payer)
  return new Uint8Array(transaction.serialize())
}

function call(program: string, data: Uint8Array = Buffer.from('hi')): TransactionInstruction {
  return new TransactionInstruction({ keys: [], programId: new PublicKey(program), data: Buffer.from(data) })
}

const price = ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 1_000_000 })
const transfer = (lamports: number) =>
  SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: other.publicKey, lamports })

describe('token balances', () => {
  const [token, mint] = [5, 6].map((byte) => new PublicKey(new Uint8Array(32).fill(byte))) as [PublicKey, PublicKey]

  function balancesOf(...programs: string[]) {
    const { engine, execute } = openEngine()
    const owner = decodeBase58(TOKEN_PROGRAM)
    const tokenData = new Uint8Array(165).fill(6, 0, 32).fill(7, 64, 65).fill(1, 108, 109)
    const mintData = new Uint8Array(82).fill(3, 44, 45).fill(1, 45, 46)
    const accounts = packAccounts([
      [token.toBytes(), { ...wallet(10n ** 9n), owner, data: tokenData }],
      [mint.toBytes(), { ...wallet(10n ** 9n), owner, data: mintData }],
    ])
    engine.handle({ op: 'load', accounts })
    const instruction = transfer(10 ** 9)
    for (const pubkey of [token, ...programs.map((program) => new PublicKey(program))])
      instruction.keys.push({ pubkey, isSigner: false, isWritable: false })
    const reply = execute(build(instruction))
    assert(reply.landed && reply.meta.err === null)
    const { preTokenBalances, postTokenBalances } = reply.meta
    return [preTokenBalances, postTokenBalances].map((balances) => balances.map(({ amount }) => amount))
  }

  test('are listed only where a token program is among the accounts, as in Agave', () => {
    assert.deepEqual(balancesOf(), [[], []])
    assert.deepEqual(balancesOf(MEMO), [[], []])
    assert.deepEqual(balancesOf(TOKEN_PROGRAM), [[7n], [7n]])
    assert.deepEqual(balancesOf(TOKEN_2022_PROGRAM), [[7n], [7n]])
  })
})

describe('fees', () => {
  const cases: [string, TransactionInstruction[], bigint][] = [
    ['one signature', [call(MEMO)], 5_000n],
    ['the new memo program', [call(MEMO_V4)], 5_000n],
    [
      'price with a limit, rounded up',
      [
        ComputeBudgetProgram.setComputeUnitLimit({ units: 1_001 }),
        ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 500_001 }),
        call(MEMO),
      ],
      5_501n,
    ],
    ['price without a limit: built-ins count 3000 each', [price, transfer(0)], 11_000n],
    ['price without a limit: programs count 200000 each', [price, call(MEMO), call(MEMO)], 408_000n],
    [
      'price without a limit: at most 1.4 million units',
      [price, ...Array.from({ length: 9 }, () => call(MEMO))],
      1_405_000n,
    ],
    [
      'price: the lookup table program is no longer a built-in',
      [price, call('AddressLookupTab1e1111111111111111111111111', Uint8Array.of(9))],
      208_000n,
    ],
    [
      'price: the vote program is no longer a built-in',
      [price, call('Vote111111111111111111111111111111111111111', Uint8Array.of(9))],
      208_000n,
    ],
    ['price: loaders are', [price, call('BPFLoaderUpgradeab1e11111111111111111111111', Uint8Array.of(9))], 11_000n],
    [
      'a precompile pays for its signatures',
      [Ed25519Program.createInstructionWithPrivateKey({ privateKey: payer.secretKey, message: Buffer.from('m') })],
      10_000n,
    ],
    ['a failing transaction', [transfer(10 ** 15)], 5_000n],
    ['a missing program: only the fee', [call(other.publicKey.toBase58())], 5_000n],
    ['an account that is not a program: only the fee', [call('SysvarC1ock11111111111111111111111111111111')], 5_000n],
    [
      'too much account data: only the fee',
      [
        new TransactionInstruction({
          keys: [],
          programId: ComputeBudgetProgram.programId,
          data: Buffer.from([4, 10, 0, 0, 0]),
        }),
        call(MEMO),
      ],
      5_000n,
    ],
  ]
  const { execute } = openEngine()
  for (const [name, instructions, fee] of cases) {
    test(name, () => {
      const reply = execute(build(...instructions))
      assert(reply.landed)
      const { preBalances, postBalances } = reply.meta
      assert.equal(reply.meta.fee, fee)
      // The engine charged the computed fee; none of these transactions moves the payer's lamports otherwise.
      assert.equal((preBalances[0] as bigint) - (postBalances[0] as bigint), fee)
    })
  }
})

describe("transaction errors in Solana's JSON form", () => {
  const { execute } = openEngine()
  const errOf = (wire: Uint8Array) => {
    const reply = execute(wire)
    return [reply.landed, reply.landed ? reply.meta.err : reply.err]
  }
  test('custom errors, named errors and errors with an account index', () => {
    assert.deepEqual(errOf(build(transfer(10 ** 15))), [true, { InstructionError: [0, { Custom: 1 }] }])
    assert.deepEqual(errOf(build(call('11111111111111111111111111111111'))), [
      true,
      { InstructionError: [0, 'InvalidInstructionData'] },
    ])
    assert.deepEqual(errOf(build(transfer(5))), [true, { InsufficientFundsForRent: { account_index: 1 } }])
    assert.deepEqual(errOf(build(call(other.publicKey.toBase58()))), [true, 'ProgramAccountNotFound'])
    assert.deepEqual(errOf(build(call('SysvarC1ock11111111111111111111111111111111'))), [
      true,
      'InvalidProgramForExecution',
    ])
  })
  test('errors of transactions that do not land', () => {
    const limit = ComputeBudgetProgram.setComputeUnitLimit({ units: 5 })
    assert.deepEqual(errOf(build(limit, limit)), [false, { DuplicateInstruction: 1 }])
    const poor = new Transaction({ feePayer: other.publicKey, blockhash, lastValidBlockHeight: 1 }).add(call(MEMO))
    poor.sign(other)
    assert.deepEqual(errOf(new Uint8Array(poor.serialize())), [false, 'AccountNotFound'])
    const forged = build(call(MEMO))
    forged[10] = (forged[10] as number) ^ 1
    assert.deepEqual(errOf(forged), [false, 'SignatureFailure'])
    assert.deepEqual(errOf(Uint8Array.of(1, 2, 3)), [false, 'SanitizeFailure'])
  })
})

test('a transfer reports balances, units, logs and exactly the accounts it changed', () => {
  const { execute } = openEngine()
  const reply = execute(build(transfer(1_000_000)))
  assert(reply.landed)
  assert.deepEqual(reply.meta.preBalances, [10n ** 12n, 0n, 1n])
  assert.deepEqual(reply.meta.postBalances, [10n ** 12n - 1_005_000n, 1_000_000n, 1n])
  assert.equal(reply.meta.computeUnitsConsumed, 150n)
  assert.equal(reply.meta.logMessages.at(-1), 'Program 11111111111111111111111111111111 success')
  assert.deepEqual(
    reply.writes.map(({ keyIndex }) => keyIndex),
    [0, 1],
  )
})

test('an account without lamports is deleted', () => {
  const { engine, execute } = openEngine()
  engine.handle({ op: 'load', accounts: packAccounts([[other.publicKey.toBytes(), wallet(1_005_000n)]]) })
  const sweep = new Transaction({ feePayer: other.publicKey, blockhash, lastValidBlockHeight: 1 })
  sweep.add(SystemProgram.transfer({ fromPubkey: other.publicKey, toPubkey: payer.publicKey, lamports: 1_000_000 }))
  sweep.sign(other)
  const reply = execute(new Uint8Array(sweep.serialize()))
  assert(reply.landed)
  assert.deepEqual(reply.writes[0], { keyIndex: 0, account: null })
})

test('a simulation changes no state and returns the accounts as they would be', () => {
  const { engine, execute } = openEngine()
  const wire = build(transfer(1_000_000))
  const run = { op: 'simulate', wire, nonce: false, verifySignatures: true } as const
  const first = engine.handle(run) as SimulateReply
  const second = engine.handle(run) as SimulateReply
  assert.deepEqual(first, second)
  assert.equal(first.meta.err, null)
  assert.equal(first.postAccounts[1]?.lamports, 1_000_000n)
  // Two wallets and the system program's 21 bytes; the recipient does not exist yet.
  assert.equal(first.loadedAccountsDataSize, 64 + 64 + 21)
  const executed = execute(wire)
  assert(executed.landed)
  assert.deepEqual(executed.meta, first.meta)
})

test('a simulation without signature check runs an unsigned transaction', () => {
  const { engine } = openEngine()
  const wire = build(transfer(1_000_000))
  wire.fill(0, 1, 65)
  const run = { op: 'simulate', wire, nonce: false } as const
  assert.equal((engine.handle({ ...run, verifySignatures: true }) as SimulateReply).meta.err, 'SignatureFailure')
  assert.equal((engine.handle({ ...run, verifySignatures: false }) as SimulateReply).meta.err, null)
})

test('the dump holds the programs, the native mints and no litesvm airdrop wallet', () => {
  const { engine } = openEngine()
  const dump = engine.handle({ op: 'dump' })
  assert(dump && 'accounts' in dump)
  const addresses = new Set(dump.accounts.map(([address]) => new PublicKey(address).toBase58()))
  for (const address of [
    MEMO,
    MEMO_V4,
    'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
    'So11111111111111111111111111111111111111112',
    'SysvarRent111111111111111111111111111111111',
  ]) {
    assert(addresses.has(address), address)
  }
  assert(!addresses.has('pM1fLHWNGSRDyGmaBi4sKs9UeV72E7tkPpMyVbs2FHj'))
})

test('a fork executes on other accounts and leaves the state as it was', () => {
  const { engine, execute } = openEngine()
  assert(execute(build(transfer(2_000_000))).landed)
  // In the fork the payer has less than the second transfer takes, and the recipient does not exist yet.
  const before = packAccounts([
    [payer.publicKey.toBytes(), wallet(5_000_000n)],
    [other.publicKey.toBytes(), null],
  ])
  const wires = [build(transfer(1_000_000)), build(transfer(9_000_000)), build(transfer(1_500_000))]
  const { replies } = engine.handle({ op: 'fork', before, wires }) as ForkReply
  assert.deepEqual(
    replies.map((reply) => reply.landed && [reply.meta.err, reply.meta.preBalances[1], reply.meta.postBalances[1]]),
    [
      [null, 0n, 1_000_000n],
      [{ InstructionError: [0, { Custom: 1 }] }, 1_000_000n, 1_000_000n],
      [null, 1_000_000n, 2_500_000n],
    ],
  )
  const after = execute(build(transfer(1)))
  assert(after.landed)
  assert.deepEqual(after.meta.preBalances.slice(0, 2), [10n ** 12n - 2_000_000n - 5_000n, 2_000_000n])
})
