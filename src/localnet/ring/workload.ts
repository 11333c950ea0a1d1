import { type Random, randomInt } from '../../core/random.ts'
import { keccak256 } from '../../evm/keccak256.ts'
import { Draft, NO_BYTES, OPCODE, type Txn } from './txn.ts'
import {
  type Account,
  type Contract,
  entry,
  entryOfEntry,
  join,
  numberedEntry,
  type Slot,
  variable,
  type World,
  words,
  writeWord,
} from './world.ts'
import { pickZipf } from './zipf.ts'

const TRUE_WORD = words(1)
const ZERO_WORD = words(0)
const START_TOKENS = 1_000_000_000_000

const selector = (signature: string): Uint8Array => keccak256(Buffer.from(signature)).slice(0, 4)
const topic = (signature: string): Uint8Array => keccak256(Buffer.from(signature))

/** Places of variables in the storage of the contracts, as common implementations have them. */
const POSITION = {
  token: { balances: 0, allowances: 1 },
  pool: { token0: 6, token1: 7, reserves: 8, lock: 12 },
  collection: { owners: 2, balances: 3, supply: 8 },
} as const

/** Makes transactions without end: mostly token transfers and swaps, a few accounts and pools much busier than the rest. */
export function createWorkload(world: World, random: Random, options: { failShare: number }): () => Txn {
  const signatures = {
    transfer: selector('transfer(address,uint256)'),
    transferFrom: selector('transferFrom(address,address,uint256)'),
    swapExact: selector('swapExactTokensForTokens(uint256,uint256,address[],address,uint256)'),
    getReserves: selector('getReserves()'),
    swap: selector('swap(uint256,uint256,address,bytes)'),
    mint: selector('mint(address)'),
  }
  const topics = {
    transfer: topic('Transfer(address,address,uint256)'),
    sync: topic('Sync(uint112,uint112)'),
    swap: topic('Swap(address,uint256,uint256,uint256,uint256,address)'),
  }
  const user = (): Account => pickZipf(world.users, random)
  const amountOf = (slot: Slot): number => Math.floor(slot.value * 0.001 * random.float()) + 1

  return () => {
    const draw = random.float()
    if (draw < 0.15) return transfer()
    if (draw < 0.6) return tokenTransfer()
    return draw < 0.9 ? swap() : mint()
  }

  function transfer(): Txn {
    const draft = begin('transfer', user(), 21_000, 120_000)
    const to = draft.other(user())
    const valueGwei = Math.min(draft.sender.balanceGwei * 0.001, 1 + randomInt(random, 5_000_000))
    draft.pay(to, Math.floor(valueGwei))
    draft.call(to, NO_BYTES, NO_BYTES, 1)
    return draft.end(to, NO_BYTES)
  }

  function tokenTransfer(): Txn {
    const draft = begin('token', user(), 52_000, 250_000)
    const token = pickZipf(world.tokens, random)
    const to = draft.other(user())
    const data = join(signatures.transfer, to.word, ZERO_WORD)
    const amount = moveTokens(draft, token, draft.sender, to)
    writeWord(data, 36, amount)
    draft.call(token, data, TRUE_WORD, 1)
    return draft.end(token, data)
  }

  function swap(): Txn {
    const draft = begin('swap', user(), 128_000, 600_000)
    const { sender } = draft
    const pool = pickZipf(world.pools, random)
    const isForward = random.float() < 0.5
    const [tokenIn, tokenOut] = isForward ? [pool.token0, pool.token1] : [pool.token1, pool.token0]
    const position = POSITION.pool
    draft.touch(world.router)
    draft.read(variable(pool.contract, position.token0, pool.token0.index))
    draft.read(variable(pool.contract, position.token1, pool.token1.index))
    draft.read(entryOfEntry(tokenIn, POSITION.token.allowances, [sender, world.router], START_TOKENS))
    const amountIn = moveTokens(draft, tokenIn, sender, pool.contract)
    const amountOut = moveTokens(draft, tokenOut, pool.contract, sender)
    const reserves = variable(pool.contract, position.reserves, START_TOKENS)
    draft.write(reserves, Math.max(1, reserves.value + (isForward ? amountIn : -amountOut)))
    draft.lock(pool.contract, position.lock)
    draft.log(pool.contract, [topics.sync], words(reserves.value, START_TOKENS))
    const amounts = isForward ? [amountIn, 0, 0, amountOut] : [0, amountIn, amountOut, 0]
    draft.log(pool.contract, [topics.swap, world.router.word, sender.word], words(...amounts))

    const data = join(signatures.swapExact, words(amountIn, amountOut, 160, 0, 2 ** 40, 2), tokenIn.word, tokenOut.word)
    draft.call(world.router, data, words(32, 2, amountIn, amountOut), 1)
    const inner = { caller: world.router, depth: 1 }
    const pull = join(signatures.transferFrom, sender.word, pool.contract.word, words(amountIn))
    draft.call(tokenIn, pull, TRUE_WORD, 0.3, inner)
    draft.call(pool.contract, signatures.getReserves, words(START_TOKENS, START_TOKENS, 0), 0.05, {
      ...inner,
      opcode: OPCODE.staticCall,
    })
    draft.call(pool.contract, join(signatures.swap, words(amountOut, 0, 0, 128, 0)), NO_BYTES, 0.5, inner)
    const push = join(signatures.transfer, sender.word, words(amountOut))
    draft.call(tokenOut, push, TRUE_WORD, 0.2, { caller: pool.contract, depth: 2 })
    return draft.end(world.router, data)
  }

  function mint(): Txn {
    const draft = begin('mint', user(), 95_000, 350_000)
    const collection = pickZipf(world.collections, random)
    const { supply, owners, balances } = POSITION.collection
    const total = variable(collection, supply)
    const id = total.value + 1
    draft.write(total, id)
    draft.write(numberedEntry(collection, owners, id), draft.sender.index + 1)
    const owned = entry(collection, balances, draft.sender, 0)
    draft.write(owned, owned.value + 1)
    draft.log(collection, [topics.transfer, ZERO_WORD, draft.sender.word, words(id)], NO_BYTES)
    const data = join(signatures.mint, draft.sender.word)
    draft.call(collection, data, words(id), 1)
    return draft.end(collection, data)
  }

  function moveTokens(draft: Draft, token: Contract, from: Account, to: Account): number {
    const { balances } = POSITION.token
    const source = entry(token, balances, from, START_TOKENS)
    const target = entry(token, balances, to, START_TOKENS)
    const amount = Math.min(amountOf(source), source.value)
    draft.write(source, source.value - amount)
    draft.write(target, target.value + amount)
    draft.log(token, [topics.transfer, from.word, to.word], words(amount))
    return amount
  }

  function begin(kind: Txn['kind'], sender: Account, gas: number, costNs: number): Draft {
    // Only calls of contracts can fail; a transfer that cannot be paid never gets into a block.
    const isSuccess = kind === 'transfer' || random.float() >= options.failShare
    return new Draft({ kind, sender, gas, costNs, isSuccess }, world, random, user)
  }
}
