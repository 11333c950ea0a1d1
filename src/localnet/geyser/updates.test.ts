import assert from 'node:assert/strict'
import { test } from 'node:test'
import { account, address, createChainDouble, MEMO } from '../../../test/support/solana/chain-double.ts'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { type SubscribeUpdate, SubscribeUpdateSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../../solana/geyser/protobuf.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import { AccountUpdate } from './account-update.ts'
import type { BlockUpdate } from './block-update.ts'
import { encodeCreatedAt } from './scratch.ts'
import { createSlotContent } from './slot-content.ts'
import { SlotUpdate } from './slot-update.ts'
import { TransactionUpdate } from './transaction-update.ts'

const NOW_MS = 1_800_000_000_123
const createdAt = encodeCreatedAt(NOW_MS)

function decode(body: Uint8Array): SubscribeUpdate {
  const update = decodeMessage(SubscribeUpdateSchema, body)
  assert.ok(update)
  assert.deepEqual([update.createdAt?.seconds, update.createdAt?.nanos], [1_800_000_000n, 123_000_000])
  assert.equal(update.$unknown, undefined)
  return update
}

function valueOf<Case extends SubscribeUpdate['updateOneof']['case']>(body: Uint8Array, expected: Case) {
  const { updateOneof } = decode(body)
  assert.equal(updateOneof.case, expected)
  return updateOneof.value as Extract<SubscribeUpdate['updateOneof'], { case: Case }>['value']
}

test('an account update carries every field', () => {
  const { write } = createChainDouble()
  const signature = address('a').repeat(2).slice(0, 87)
  const state = account({ lamports: 18446744073709551615n, executable: true, data: Buffer.from('hello') })
  const update = new AccountUpdate({ ...write(address('x'), state), slot: 77, writeVersion: 9n }, createdAt)
  const value = valueOf(update.body([]), 'account')
  assert.deepEqual([value?.slot, value?.isStartup], [77n, false])
  const info = value?.account
  assert.deepEqual(info && plain(info), {
    pubkey: plainBytes(decodeBase58(address('x'))),
    lamports: 18446744073709551615n,
    owner: plainBytes(new Uint8Array(32)),
    executable: true,
    rentEpoch: 18446744073709551615n,
    data: plainBytes(Buffer.from('hello')),
    writeVersion: 9n,
  })
  assert.equal(info?.txnSignature, undefined)
  const signed = new AccountUpdate({ ...write(address('x'), null), signature }, createdAt)
  const gone = valueOf(signed.body([]), 'account')?.account
  assert.deepEqual(
    [gone?.lamports, gone?.data.length, gone?.txnSignature?.length],
    [0n, 0, decodeBase58(signature).length],
  )
})

test('data slices include only parts that fit completely', () => {
  const { write } = createChainDouble()
  const update = new AccountUpdate(write(address('x'), account({ data: Buffer.from('0123456789') })), createdAt)
  const dataOf = (slices: { offset: number; length: number }[]) =>
    Buffer.from(valueOf(update.body(slices), 'account')?.account?.data ?? []).toString()
  assert.equal(dataOf([{ offset: 2, length: 3 }]), '234')
  assert.equal(
    dataOf([
      { offset: 0, length: 1 },
      { offset: 8, length: 2 },
    ]),
    '089',
  )
  assert.equal(dataOf([{ offset: 8, length: 3 }]), '')
  assert.equal(dataOf([{ offset: 3, length: 0 }]), '')
  assert.equal(dataOf([]), '0123456789')
})

test('a transaction update carries message and meta unchanged', () => {
  const double = createChainDouble()
  const record = double.transaction({
    memo: 'hi',
    meta: {
      err: { InstructionError: [0, { Custom: 7 }] },
      fee: 5000n,
      preBalances: [3n, 0n, 18446744073709551615n],
      postBalances: [1n, 2n, 0n],
      preTokenBalances: [tokenBalance(1, 0n)],
      postTokenBalances: [tokenBalance(2, 1_234_500n)],
      innerInstructions: [
        {
          index: 1,
          instructions: [{ programIdIndex: 2, accounts: Uint8Array.of(0, 1), data: Uint8Array.of(9), stackHeight: 2 }],
        },
      ],
      logMessages: ['one', '', 'zwölf'],
      loadedAddresses: { writable: [address('w')], readonly: [address('r')] },
      returnData: { programId: MEMO, data: Uint8Array.of(1, 2) },
    },
  })
  const update = new TransactionUpdate({ ...record, slot: 5, index: 3 }, createdAt)
  const value = valueOf(update.body(), 'transaction')
  const parse = parseTransaction(record.wire)
  assert.ok(parse.ok)
  const info = value?.transaction
  assert.equal(value?.slot, 5n)
  assert.deepEqual([info?.index, info?.isVote], [3n, false])
  assert.deepEqual(info?.transaction && plain(info.transaction), {
    signatures: parse.transaction.signatures.map(plainBytes),
    message: {
      header: { numRequiredSignatures: 1, numReadonlySignedAccounts: 0, numReadonlyUnsignedAccounts: 1 },
      accountKeys: parse.transaction.staticKeys.map(plainBytes),
      recentBlockhash: plainBytes(parse.transaction.recentBlockhash),
      instructions: [
        { programIdIndex: 1, accounts: plainBytes(Uint8Array.of(0)), data: plainBytes(Buffer.from('hi')) },
      ],
      versioned: false,
      addressTableLookups: [],
    },
  })
  assert.deepEqual(info?.meta && plain(info.meta), {
    err: { err: plainBytes(Buffer.from('08000000001900000007000000', 'hex')) },
    fee: 5000n,
    preBalances: [3n, 0n, 18446744073709551615n],
    postBalances: [1n, 2n, 0n],
    innerInstructions: [
      {
        index: 1,
        instructions: [
          {
            programIdIndex: 2,
            accounts: plainBytes(Uint8Array.of(0, 1)),
            data: plainBytes(Uint8Array.of(9)),
            stackHeight: 2,
          },
        ],
      },
    ],
    innerInstructionsNone: false,
    logMessages: ['one', '', 'zwölf'],
    logMessagesNone: false,
    preTokenBalances: [protoBalance(1, { uiAmount: 0, amount: '0', uiAmountString: '0' })],
    postTokenBalances: [protoBalance(2, { uiAmount: 1.2345, amount: '1234500', uiAmountString: '1.2345' })],
    rewards: [],
    loadedWritableAddresses: [plainBytes(decodeBase58(address('w')))],
    loadedReadonlyAddresses: [plainBytes(decodeBase58(address('r')))],
    returnData: { programId: plainBytes(decodeBase58(MEMO)), data: plainBytes(Uint8Array.of(1, 2)) },
    returnDataNone: false,
    computeUnitsConsumed: 287n,
  })
  const status = valueOf(update.statusBody(), 'transactionStatus')
  assert.deepEqual([status?.slot, status?.index, status?.err?.err.length], [5n, 3n, 13])
  assert.deepEqual(status && plainBytes(status.signature), plainBytes(decodeBase58(record.signature)))
})

test('votes are distinguished from other transactions', () => {
  const double = createChainDouble()
  const vote = double.transaction({ programId: 'Vote111111111111111111111111111111111111111' })
  assert.equal(new TransactionUpdate(vote, createdAt).isVote, true)
  assert.equal(valueOf(new TransactionUpdate(vote, createdAt).body(), 'transaction')?.transaction?.isVote, true)
  assert.equal(new TransactionUpdate(double.transaction(), createdAt).isVote, false)
})

test('the content of a block keeps its order and is reduced to the last write of each account', () => {
  const double = createChainDouble()
  const clock = double.write(address('clock'), account())
  const first = double.transaction({ writes: [[address('a'), account({ lamports: 1n })]] })
  const second = double.transaction({
    writes: [
      [address('a'), account({ lamports: 2n })],
      [address('b'), account()],
    ],
  })
  const fees = double.write(address('leader'), account())
  const block = double.produce({ transactions: [first, second], systemWrites: [clock, fees] })
  const content = createSlotContent(block, NOW_MS)
  const reported = (list: typeof content.live) =>
    list.map((update) => {
      if (update.kind === 'account')
        return `${Object.entries(NAMES).find(([, key]) => key === update.write.address)?.[0]}`
      return update.kind
    })
  assert.deepEqual(reported(content.live), ['clock', 'a', 'transaction', 'a', 'b', 'transaction', 'leader', 'entry'])
  assert.deepEqual(reported(content.settled), ['clock', 'transaction', 'a', 'b', 'transaction', 'leader', 'entry'])
  assert.deepEqual(reported(content.summary), ['block', 'blockMeta'])
})

const NAMES = Object.fromEntries(['clock', 'a', 'b', 'leader'].map((name) => [name, address(name)]))

test('block, block meta, entry and slot updates carry every field', () => {
  const double = createChainDouble()
  const rewards = [{ pubkey: address('leader'), lamports: 2500n, postBalance: 7n, rewardType: 'Fee' as const }]
  const record = double.transaction({ writes: [[address('a'), account({ data: Buffer.from('0123') })]] })
  const block = { ...double.produce({ transactions: [record] }), rewards }
  const [blockUpdate, meta] = createSlotContent(block, NOW_MS).summary as [BlockUpdate, { body(): Uint8Array }]
  const common = {
    slot: 10n,
    blockhash: block.blockhash,
    rewards: {
      rewards: [
        {
          pubkey: address('leader'),
          lamports: 2500n,
          postBalance: 7n,
          rewardType: 1,
          commission: '',
          commissionBps: '',
        },
      ],
    },
    blockTime: { timestamp: BigInt(block.time) },
    blockHeight: { blockHeight: 10n },
    parentSlot: 9n,
    parentBlockhash: block.previousBlockhash,
    executedTransactionCount: 1n,
    entriesCount: 1n,
  }
  const blockMeta = valueOf(meta.body(), 'blockMeta')
  assert.deepEqual(blockMeta && plain(blockMeta), common)
  const slices = [{ offset: 1, length: 2 }]
  const parts = {
    transactions: blockUpdate.transactions,
    accounts: blockUpdate.accounts,
    entries: blockUpdate.entries,
    slices,
  }
  const full = valueOf(blockUpdate.encode(parts), 'block')
  assert.equal(full?.transactions[0]?.transaction?.signatures.length, 1)
  assert.equal(Buffer.from(full?.accounts[0]?.data ?? []).toString(), '12')
  assert.equal(full?.entries[0]?.executedTransactionCount, 1n)
  const bare = valueOf(
    blockUpdate.encode({ transactions: undefined, accounts: undefined, entries: undefined, slices: [] }),
    'block',
  )
  assert.deepEqual(bare && plain(bare), {
    ...common,
    transactions: [],
    accounts: [],
    entries: [],
    updatedAccountCount: 1n,
  })
  const entry = valueOf(blockUpdate.entries[0]?.body() ?? new Uint8Array(), 'entry')
  assert.deepEqual(entry && [entry.slot, entry.index, entry.numHashes, entry.hash.length], [10n, 0n, 12n, 32])
  const slot = valueOf(new SlotUpdate({ slot: 10, parentSlot: 0 }, 'createdBank', createdAt).body(), 'slot')
  assert.deepEqual(slot && plain(slot), { slot: 10n, parent: 0n, status: 5 })
})

function tokenBalance(accountIndex: number, amount: bigint) {
  return { accountIndex, mint: address('mint'), owner: address('owner'), programId: MEMO, amount, decimals: 6 }
}

function protoBalance(accountIndex: number, amount: { uiAmount: number; amount: string; uiAmountString: string }) {
  return {
    accountIndex,
    mint: address('mint'),
    owner: address('owner'),
    programId: MEMO,
    uiTokenAmount: { ...amount, decimals: 6 },
  }
}

/** A message without the members its library adds, bytes as arrays. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return plainBytes(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => name !== '$typeName' && member !== undefined)
      .map(([name, member]) => [name, plain(member)]),
  )
}

function plainBytes(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
