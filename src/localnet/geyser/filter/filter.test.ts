import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { account, address, createChainDouble, MEMO } from '../../../../test/support/solana/chain-double.ts'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import {
  type CommitmentLevel,
  SubscribeRequestSchema,
  type TokenAccountExpansionControlFlag,
} from '../../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../../solana/geyser/protobuf.ts'
import type { Account, TransactionMeta } from '../../chain/model.ts'
import { AccountUpdate } from '../account-update.ts'
import { BlockUpdate } from '../block-update.ts'
import { encodeCreatedAt } from '../scratch.ts'
import { createSlotContent } from '../slot-content.ts'
import { TransactionUpdate } from '../transaction-update.ts'
import { compileFilter, type StreamFilter } from './filter.ts'
import { DEFAULT_FILTER_LIMITS, type FilterLimits } from './limits.ts'

type Request = MessageInitShape<typeof SubscribeRequestSchema>

const createdAt = encodeCreatedAt(0)
const double = createChainDouble()

function compile(request: Request, limits: FilterLimits = DEFAULT_FILTER_LIMITS) {
  const decoded = decodeMessage(SubscribeRequestSchema, encodeMessage(SubscribeRequestSchema, request))
  assert.ok(decoded)
  return compileFilter(decoded, limits)
}

function filterOf(request: Request): StreamFilter {
  const compiled = compile(request)
  assert.ok(compiled.ok, compiled.ok ? '' : compiled.reason)
  return compiled.filter
}

function refusalOf(request: Request, limits: FilterLimits = DEFAULT_FILTER_LIMITS): string {
  const compiled = compile(request, limits)
  assert.ok(!compiled.ok)
  return compiled.reason
}

test('a map entry without a value, as Rust clients send it, is an empty filter', () => {
  const request = decodeMessage(SubscribeRequestSchema, Buffer.from('12070a05736c6f74733000', 'hex'))
  assert.ok(request)
  const compiled = compileFilter(request, DEFAULT_FILTER_LIMITS)
  assert.ok(compiled.ok)
  assert.equal(compiled.filter.commitment, 'processed')
  assert.equal(compiled.filter.slots.length, 1)
  assert.equal(Buffer.from(compiled.filter.slots[0]?.name ?? []).toString('hex'), '0a05736c6f7473')
})

test('account filters: all members must match, the values of a list are alternatives', () => {
  const owner = address('owner')
  const token = new Uint8Array(165)
  token[108] = 1
  const cases: [filter: object, state: Partial<Account>, expected: boolean][] = [
    [{}, {}, true],
    [{ account: [address('x')] }, {}, true],
    [{ account: [address('y'), address('x')] }, {}, true],
    [{ account: [address('y')] }, {}, false],
    [{ owner: [owner] }, { owner }, true],
    [{ owner: [owner] }, {}, false],
    [{ account: [address('x')], owner: [owner] }, {}, false],
    [{ nonemptyTxnSignature: true }, {}, false],
    [{ nonemptyTxnSignature: false }, {}, true],
    [{ filters: [state('datasize', 3n)] }, { data: Buffer.from('abc') }, true],
    [{ filters: [state('datasize', 3n)] }, { data: Buffer.from('ab') }, false],
    [{ filters: [memcmp(1n, 'bytes', Buffer.from('bc'))] }, { data: Buffer.from('abc') }, true],
    [{ filters: [memcmp(2n, 'bytes', Buffer.from('bc'))] }, { data: Buffer.from('abc') }, false],
    [{ filters: [memcmp(2n ** 63n, 'bytes', Buffer.from('b'))] }, { data: Buffer.from('abc') }, false],
    [{ filters: [memcmp(0n, 'base58', encodeBase58(Buffer.from('ab')))] }, { data: Buffer.from('abc') }, true],
    [{ filters: [memcmp(0n, 'base64', btoa('ab'))] }, { data: Buffer.from('abc') }, true],
    [{ filters: [state('tokenAccountState', true)] }, { data: token }, true],
    [{ filters: [state('tokenAccountState', true)] }, { data: new Uint8Array(165) }, false],
    [{ filters: [lamports('eq', 5n)] }, { lamports: 5n }, true],
    [{ filters: [lamports('ne', 5n)] }, { lamports: 5n }, false],
    [{ filters: [lamports('lt', 5n)] }, { lamports: 4n }, true],
    [{ filters: [lamports('lt', 5n)] }, { lamports: 5n }, false],
    [{ filters: [lamports('gt', 5n)] }, { lamports: 6n }, true],
    [{ filters: [lamports('gt', 5n), state('datasize', 1n)] }, { lamports: 6n }, false],
  ]
  for (const [filter, parts, expected] of cases) {
    const [compiled] = filterOf({ accounts: { a: filter } }).accounts
    const update = new AccountUpdate(double.write(address('x'), account(parts)), createdAt)
    assert.equal(compiled?.filter(update), expected, print(filter))
  }
  const [signed] = filterOf({ accounts: { a: { nonemptyTxnSignature: true } } }).accounts
  assert.ok(signed?.filter(new AccountUpdate(double.write(address('x'), account(), address('signature')), createdAt)))
})

test('transaction filters: vote, failed, signature, include, exclude, required', () => {
  const loaded = address('loaded')
  const record = double.transaction({ meta: { loadedAddresses: { writable: [loaded], readonly: [] } } })
  const update = new TransactionUpdate(record, createdAt)
  const cases: [filter: object, expected: boolean][] = [
    [{}, true],
    [{ vote: false }, true],
    [{ vote: true }, false],
    [{ failed: false }, true],
    [{ failed: true }, false],
    [{ signature: record.signature }, true],
    [{ signature: double.transaction().signature }, false],
    [{ accountInclude: [address('no'), MEMO] }, true],
    [{ accountInclude: [address('no')] }, false],
    [{ accountInclude: [loaded] }, true],
    [{ accountExclude: [loaded] }, false],
    [{ accountExclude: [address('no')] }, true],
    [{ accountRequired: [MEMO, loaded] }, true],
    [{ accountRequired: [MEMO, address('no')] }, false],
    [{ accountInclude: [MEMO], accountExclude: [loaded] }, false],
  ]
  for (const [filter, expected] of cases) {
    const { transactions, transactionsStatus } = filterOf({
      transactions: { t: filter },
      transactionsStatus: { s: filter },
    })
    assert.equal(transactions[0]?.filter(update), expected, print(filter))
    assert.equal(transactionsStatus[0]?.filter(update), expected)
  }
})

test('token_accounts also matches the owners of token balances', () => {
  const balance = (accountIndex: number, owner: string, amount: bigint) => ({
    accountIndex,
    mint: address('mint'),
    owner: address(owner),
    programId: MEMO,
    amount,
    decimals: 0,
  })
  const meta: Partial<TransactionMeta> = {
    preTokenBalances: [balance(1, 'still', 5n), balance(2, 'changed', 5n), balance(3, 'closed', 1n)],
    postTokenBalances: [balance(1, 'still', 5n), balance(2, 'changed', 6n), balance(4, 'opened', 0n)],
  }
  const update = new TransactionUpdate(double.transaction({ meta }), createdAt)
  const matches = (owner: string, tokenAccounts?: TokenAccountExpansionControlFlag) =>
    filterOf({
      transactions: {
        t: { accountInclude: [address(owner)], ...(tokenAccounts === undefined ? {} : { tokenAccounts }) },
      },
    }).transactions[0]?.filter(update)
  for (const owner of ['still', 'changed', 'closed', 'opened']) {
    assert.equal(matches(owner), false)
    assert.equal(matches(owner, 0), true)
    assert.equal(matches(owner, 1), owner !== 'still', owner)
  }
  assert.equal(matches('stranger', 0), false)
})

test('a slot filter passes its own commitment or all, and interslot updates only on request', () => {
  const stages = ['firstShredReceived', 'createdBank', 'completed', 'processed', 'confirmed', 'finalized'] as const
  const passing = (filter: object, commitment: CommitmentLevel = 1) => {
    const [slots] = filterOf({ slots: { s: filter }, commitment }).slots
    return stages.filter((stage) => slots?.filter(stage))
  }
  assert.deepEqual(passing({}), ['processed', 'confirmed', 'finalized'])
  assert.deepEqual(passing({ interslotUpdates: true }), [...stages])
  assert.deepEqual(passing({ filterByCommitment: true }), ['confirmed'])
  assert.deepEqual(passing({ filterByCommitment: true, interslotUpdates: true }, 2), ['finalized'])
})

test('block filters select transactions, accounts and entries', () => {
  const block = double.produce({
    transactions: [
      double.transaction({ payer: 1, writes: [[address('a'), account()]] }),
      double.transaction({ payer: 2, programId: address('other'), writes: [[MEMO, account()]] }),
    ],
  })
  const [update] = createSlotContent(block, 0).summary
  assert.ok(update instanceof BlockUpdate)
  const chosen = (filter: object) => {
    const [compiled] = filterOf({ blocks: { b: filter } }).blocks
    const { transactions, accounts, entries } = compiled?.filter(update, []) ?? {}
    return [transactions?.length, accounts?.length, entries?.length]
  }
  assert.deepEqual(chosen({}), [2, undefined, undefined])
  assert.deepEqual(chosen({ includeTransactions: false }), [undefined, undefined, undefined])
  assert.deepEqual(chosen({ includeAccounts: true, includeEntries: true }), [2, 2, 1])
  assert.deepEqual(chosen({ accountInclude: [MEMO], includeAccounts: true, includeEntries: true }), [1, 1, 1])
})

test('invalid filters are refused with the messages of Yellowstone gRPC', () => {
  const cases: [request: Request, reason: string][] = [
    [{ commitment: 7 as never }, 'failed to create CommitmentLevel from 7'],
    [{ accounts: { a: { account: ['0'] } } }, 'Invalid Base58 string'],
    [{ accounts: { a: { owner: ['1'] } } }, 'String is the wrong size'],
    [{ transactions: { a: { signature: '1' } } }, 'string decoded to wrong size for signature'],
    [{ transactions: { a: { accountRequired: ['1'] } } }, 'String is the wrong size'],
    [{ accounts: { a: { filters: Array(5).fill(state('datasize', 1n)) } } }, 'Too many filters provided; max 4'],
    [{ accounts: { a: { filters: [state('datasize', 1n), state('datasize', 1n)] } } }, 'datasize used more than once'],
    [{ accounts: { a: { filters: [{}] } } }, 'filter should be defined'],
    [
      { accounts: { a: { filters: [state('tokenAccountState', false)] } } },
      'token_account_state only allowed to be true',
    ],
    [
      { accounts: { a: { filters: [{ filter: { case: 'lamports', value: {} } }] } } },
      'cmp for lamports should be defined',
    ],
    [
      { accounts: { a: { filters: [{ filter: { case: 'memcmp', value: {} } }] } } },
      'data for memcmp should be defined',
    ],
    [{ accounts: { a: { filters: [memcmp(0n, 'base58', '0')] } } }, 'invalid base58'],
    [{ accounts: { a: { filters: [memcmp(0n, 'base64', '*')] } } }, 'invalid base64'],
    [{ accounts: { a: { filters: [memcmp(0n, 'bytes', new Uint8Array(129))] } } }, 'data too large'],
    [{ accounts: { a: { filters: [memcmp(0n, 'base58', '1'.repeat(176))] } } }, 'data too large'],
    [{ accountsDataSlice: [slice(5n, 1n), slice(0n, 1n)] }, 'data slices out of order'],
    [{ accountsDataSlice: [slice(0n, 6n), slice(5n, 1n)] }, 'data slices overlapped'],
    [{ slots: { ['n'.repeat(129)]: {} } }, 'oversized filter name (max allowed size 128), found 129'],
  ]
  for (const [request, reason] of cases) assert.equal(refusalOf(request), reason)
})

test('a filter may be named __proto__', () => {
  const request = decodeMessage(SubscribeRequestSchema, Buffer.from('120d0a095f5f70726f746f5f5f1200', 'hex'))
  assert.ok(request)
  const compiled = compileFilter(request, DEFAULT_FILTER_LIMITS)
  assert.ok(compiled.ok)
  assert.equal(compiled.filter.slots.length, 1)
})

test('every limit is enforced with its own message', () => {
  const defaults = DEFAULT_FILTER_LIMITS
  const limits: FilterLimits = {
    ...defaults,
    accounts: {
      ...defaults.accounts,
      max: 1,
      any: false,
      accountMax: 1,
      ownerReject: new Set([MEMO]),
      dataSliceMax: 1,
    },
    transactions: { ...defaults.transactions, any: false, accountIncludeMax: 1 },
    blocks: { ...defaults.blocks, includeAccounts: false, includeEntries: false, accountIncludeAny: false },
    slots: { max: 1 },
  }
  const two = 'Max amount of filters/data_slices reached, only 1 allowed'
  const any = 'Subscribe on full stream with `any` is not allowed, at least one filter required'
  const keys = 'Max amount of Pubkeys reached, only 1 allowed'
  const cases: [request: Request, reason: string][] = [
    [{ slots: { a: {}, b: {} } }, two],
    [{ accounts: { a: { owner: [address(1)] }, b: { owner: [address(1)] } } }, two],
    [{ accountsDataSlice: [slice(0n, 1n), slice(2n, 1n)] }, two],
    [{ accounts: { a: { nonemptyTxnSignature: true } } }, any],
    [{ transactions: { a: {} } }, any],
    [{ blocks: { a: {} } }, any],
    [{ accounts: { a: { account: [address(1), address(2)] } } }, keys],
    [{ transactions: { a: { accountInclude: [address(1), address(2)] } } }, keys],
    [{ accounts: { a: { owner: [MEMO] } } }, `Pubkey ${MEMO} in filters is not allowed`],
    [{ blocks: { a: { accountInclude: [MEMO], includeAccounts: true } } }, '`include_accounts` is not allowed'],
    [{ blocks: { a: { accountInclude: [MEMO], includeEntries: true } } }, '`include_entries` is not allowed'],
  ]
  for (const [request, reason] of cases) assert.equal(refusalOf(request, limits), reason)
  assert.ok(compile({ transactions: { a: { signature: double.transaction().signature } } }, limits).ok)
})

function state(kind: string, value: unknown) {
  return { filter: { case: kind, value } } as never
}

function memcmp(offset: bigint, kind: string, value: unknown) {
  return state('memcmp', { offset, data: { case: kind, value } })
}

function lamports(kind: string, value: bigint) {
  return state('lamports', { cmp: { case: kind, value } })
}

function slice(offset: bigint, length: bigint) {
  return { offset, length }
}

function print(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? String(member) : member))
}
