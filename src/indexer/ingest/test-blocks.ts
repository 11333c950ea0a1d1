import { createSeededRandom, type Random, randomInt } from '../../core/random.ts'
import {
  type ChainBlock,
  type ChainInstruction,
  type ChainTransaction,
  VOTE_PROGRAM,
} from '../../solana/chain-block.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'

/** Chains generated from a seed, for tests and benchmarks: votes, SOL and token transfers, calls between programs, failures. */

const SYSTEM_PROGRAM = '11111111111111111111111111111111'
const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'

export type TestChainOptions = {
  readonly seed: number
  readonly blocks: number
  readonly transactionsPerBlock: number
  readonly firstSlot?: number
}

/** Linked blocks; some slots are skipped. */
export function makeTestChain({
  seed,
  blocks,
  transactionsPerBlock,
  firstSlot = 1000,
}: TestChainOptions): ChainBlock[] {
  const random = createSeededRandom(seed)
  const keys = Array.from({ length: 200 }, () => encodeBase58(random.bytes(32)))
  const chain: ChainBlock[] = []
  let parent = { slot: firstSlot - 1, blockhash: encodeBase58(random.bytes(32)) }
  for (let height = 0; height < blocks; height++) {
    const slot = parent.slot + (randomInt(random, 10) === 0 ? 2 : 1)
    const blockhash = encodeBase58(random.bytes(32))
    chain.push({
      slot,
      blockhash,
      parentSlot: parent.slot,
      parentBlockhash: parent.blockhash,
      blockTime: 1_700_000_000 + Math.floor(slot * 0.4),
      blockHeight: firstSlot + height,
      transactions: Array.from({ length: transactionsPerBlock }, (_, index) => makeTransaction(random, keys, index)),
      rewards: [
        {
          pubkey: keys[0] as string,
          lamports: 5000n,
          postBalance: 10n ** 12n,
          rewardType: 'Fee',
          commission: undefined,
        },
      ],
    })
    parent = { slot, blockhash }
  }
  return chain
}

function makeTransaction(random: Random, keys: readonly string[], index: number): ChainTransaction {
  const picked = new Set<string>()
  // A transaction contains each key once.
  const pick = (): string => {
    let key: string
    do key = keys[randomInt(random, keys.length)] as string
    while (picked.has(key))
    picked.add(key)
    return key
  }
  const isVote = randomInt(random, 2) === 0
  const [payer, from, to, mint] = [pick(), pick(), pick(), pick()]
  const amount = BigInt(randomInt(random, 1_000_000))
  const accountKeys = isVote
    ? [payer, from, VOTE_PROGRAM]
    : [payer, from, to, mint, SYSTEM_PROGRAM, TOKEN_PROGRAM, pick()]
  const outer: ChainInstruction[] = isVote
    ? [instruction(2, [1, 0], random.bytes(60))]
    : [
        instruction(4, [0, 2], tagged(4, 2n, amount)),
        instruction(6, [0, 1, 2, 3], random.bytes(40)),
        instruction(5, [1, 3, 2, 0], Buffer.concat([tagged(1, 12n, amount), Buffer.of(6)])),
      ]
  const balances = accountKeys.map(() => BigInt(randomInt(random, 1_000_000_000)))
  return {
    index,
    signature: encodeBase58(random.bytes(64)),
    version: isVote || randomInt(random, 2) === 0 ? 'legacy' : '0',
    header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: isVote ? 1 : 3 },
    accountKeys,
    staticKeyCount: accountKeys.length,
    loadedWritableCount: 0,
    recentBlockhash: pick(),
    instructions: outer,
    innerInstructions: isVote
      ? []
      : [{ index: 1, instructions: [{ ...instruction(5, [1, 2, 0], tagged(1, 3n, amount)), stackHeight: 2 }] }],
    error: randomInt(random, 8) === 0 ? { InstructionError: [1, { Custom: 6001 }] } : undefined,
    fee: 5000n,
    computeUnits: BigInt(randomInt(random, 200_000)),
    costUnits: BigInt(randomInt(random, 300_000)),
    preBalances: balances,
    postBalances: balances.map((balance, at) => (at === 0 ? balance + 5000n : at === 2 ? balance + amount : balance)),
    preTokenBalances: isVote ? [] : [tokenBalance(1, mint, payer, 10n ** 15n)],
    postTokenBalances: isVote
      ? []
      : [tokenBalance(1, mint, payer, 10n ** 15n - amount), tokenBalance(2, mint, to, amount)],
    logMessages: ['Program log: hello'],
  }
}

function instruction(programIdIndex: number, accounts: readonly number[], data: Uint8Array): ChainInstruction {
  return { programIdIndex, accounts: Uint8Array.from(accounts), data, stackHeight: 1 }
}

function tagged(tagBytes: number, tag: bigint, amount: bigint): Buffer {
  const data = Buffer.alloc(tagBytes + 8)
  data[0] = Number(tag)
  data.writeBigUInt64LE(amount, tagBytes)
  return data
}

function tokenBalance(accountIndex: number, mint: string, owner: string, amount: bigint) {
  return { accountIndex, mint, owner, programId: TOKEN_PROGRAM, amount, decimals: 6 }
}
