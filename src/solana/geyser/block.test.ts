import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { BlockFault, type ChainBlock } from '../chain-block.ts'
import { SubscribeUpdateSchema } from '../gen/geyser_pb.ts'
import { blockFromGeyser } from './block.ts'
import { encodeMessage } from './protobuf.ts'
import { geyserBytesOf } from './test-block.ts'

const KEY = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi'
const OTHER = '8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR'

function blockOf(
  change: Partial<ChainBlock['transactions'][number]> = {},
  block: Partial<ChainBlock> = {},
): ChainBlock {
  return {
    slot: 2 ** 40,
    blockhash: KEY,
    parentSlot: 2 ** 40 - 3,
    parentBlockhash: OTHER,
    blockTime: -5,
    blockHeight: 7,
    rewards: [
      { pubkey: KEY, lamports: -3n, postBalance: 2n ** 64n - 1n, rewardType: 'Voting', commission: 10 },
      { pubkey: OTHER, lamports: 2n ** 62n, postBalance: 0n, rewardType: 'Fee', commission: undefined },
    ],
    transactions: [
      {
        index: 0,
        signature: '5'.repeat(87),
        version: '1',
        header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 1 },
        accountKeys: [KEY, OTHER, KEY],
        staticKeyCount: 1,
        loadedWritableCount: 1,
        recentBlockhash: OTHER,
        instructions: [
          { programIdIndex: 1, accounts: Uint8Array.of(0, 200), data: new Uint8Array(300), stackHeight: 1 },
        ],
        innerInstructions: [
          {
            index: 0,
            instructions: [{ programIdIndex: 2, accounts: new Uint8Array(), data: Uint8Array.of(9), stackHeight: 3 }],
          },
        ],
        error: { InstructionError: [0, { Custom: 4_000_000_000 }] },
        fee: 2n ** 63n,
        computeUnits: 1n,
        costUnits: 0n,
        preBalances: [2n ** 64n - 1n, 0n, 2n ** 53n],
        postBalances: [0n, 127n, 128n],
        preTokenBalances: [
          { accountIndex: 1, mint: KEY, owner: OTHER, programId: KEY, amount: 2n ** 64n - 1n, decimals: 9 },
        ],
        postTokenBalances: [],
        logMessages: ['Program log: ä🦆', ''],
        ...change,
      },
    ],
    ...block,
  }
}

/** Any byte array as text. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value, function (this: Record<string, unknown>, name, item: unknown) {
    const own = this[name]
    if (own instanceof Uint8Array) return Buffer.from(own).toString('hex')
    return typeof item === 'bigint' ? `${item}n` : item
  })
  return JSON.parse(text) as unknown
}

test('decodes the block that a node encodes, also at the limits of every number', () => {
  for (const block of [
    blockOf(),
    blockOf({ version: 'legacy', error: undefined, innerInstructions: [] }),
    blockOf({ version: '0' }, { blockTime: undefined, blockHeight: undefined, rewards: [] }),
    blockOf({}, { transactions: [] }),
  ]) {
    const read = blockFromGeyser(geyserBytesOf(block))
    assert.deepEqual(plain(read.block), plain(block))
    assert.equal(read.executedTransactionCount, block.transactions.length)
  }
})

test('decodes the accounts of the block', () => {
  const account = {
    pubkey: new Uint8Array(32).fill(1),
    lamports: 2n ** 64n - 1n,
    owner: new Uint8Array(32).fill(2),
    executable: true,
    rentEpoch: 2n ** 64n - 1n,
    data: Uint8Array.of(1, 2, 3),
    writeVersion: 77n,
    txnSignature: new Uint8Array(64).fill(3),
  }
  const bytes = encodeMessage(SubscribeUpdateSchema, {
    updateOneof: { case: 'block', value: { accounts: [account], slot: 5n } },
  })
  const { accounts, block } = blockFromGeyser(bytes)
  assert.deepEqual(plain(accounts), plain([account]))
  assert.equal(block.slot, 5)
})

test('a truncated or mutated message gives a block or a BlockFault', () => {
  const whole = geyserBytesOf(blockOf())
  for (let length = 0; length < whole.length; length++)
    assert.throws(() => blockFromGeyser(whole.subarray(0, length)), BlockFault, `${length} bytes`)
  const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255))
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
      const bytes = Uint8Array.from(whole)
      for (const [at, byte] of changes) bytes[at] = byte
      try {
        blockFromGeyser(bytes)
      } catch (fault) {
        assert.ok(fault instanceof BlockFault, String(fault))
      }
    }),
    { seed: seedFor('geyser blocks').seed, numRuns: 2000 },
  )
})
