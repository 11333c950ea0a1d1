import { type Random, randomInt } from '../../core/random.ts'
import { keccak256 } from '../../evm/keccak256.ts'
import {
  type Account,
  type Contract,
  type EvmState,
  join,
  mappingEntry,
  nestedMappingEntry,
  type Slot,
  storageVariable,
  uncachedMappingEntry,
  words,
  writeWord,
} from './state.ts'
import { NO_BYTES, OPCODE, type Txn, TxnBuilder } from './txn.ts'

const TRUE_WORD = words(1)
const ZERO_WORD = words(0)
const START_TOKENS = 1_000_000_000_000

const selector = (signature: string): Uint8Array => keccak256(Buffer.from(signature)).slice(0, 4)
const topic = (signature: string): Uint8Array => keccak256(Buffer.from(signature))

/** Storage positions of the contracts' variables, as in common implementations. */
const STORAGE_LAYOUT = {
  token: { balances: 0, allowances: 1 },
  pool: { token0: 6, token1: 7, reserves: 8, lock: 12 },
  collection: { owners: 2, balances: 3, supply: 8 },
} as const

/** Generates transactions: mostly token transfers and swaps, with a few accounts and pools much busier than the rest. */
export function createWorkload(state: EvmState, random: Random, options: { failShare: number }): () => Txn {
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
  const user = (): Account => pickZipf(state.users, random)
  const amountOf = (slot: Slot): number => Math.floor(slot.value * 0.001 * random.float()) + 1

  return () => {
    const draw = random.float()
    if (draw < 0.15) return transfer()
    if (draw < 0.6) return tokenTransfer()
    return draw < 0.9 ? swap() : mint()
  }

  function transfer(): Txn {
    const txn = begin('transfer', user(), 21_000, 120_000)
    const to = txn.otherThanSender(user())
    const valueGwei = Math.min(txn.sender.balanceGwei * 0.001, 1 + randomInt(random, 5_000_000))
    txn.pay(to, Math.floor(valueGwei))
    txn.call(to, NO_BYTES, NO_BYTES, 1)
    return txn.end(to, NO_BYTES)
  }

  function tokenTransfer(): Txn {
    const txn = begin('token', user(), 52_000, 250_000)
    const token = pickZipf(state.tokens, random)
    const to = txn.otherThanSender(user())
    const data = join(signatures.transfer, to.word, ZERO_WORD)
    const amount = moveTokens(txn, token, txn.sender, to)
    writeWord(data, 36, amount)
    txn.call(token, data, TRUE_WORD, 1)
    return txn.end(token, data)
  }

  function swap(): Txn {
    const txn = begin('swap', user(), 128_000, 600_000)
    const { sender } = txn
    const pool = pickZipf(state.pools, random)
    const isForward = random.float() < 0.5
    const [tokenIn, tokenOut] = isForward ? [pool.token0, pool.token1] : [pool.token1, pool.token0]
    const layout = STORAGE_LAYOUT.pool
    txn.touch(state.router)
    txn.read(storageVariable(pool.contract, layout.token0, pool.token0.index))
    txn.read(storageVariable(pool.contract, layout.token1, pool.token1.index))
    txn.read(nestedMappingEntry(tokenIn, STORAGE_LAYOUT.token.allowances, [sender, state.router], START_TOKENS))
    const amountIn = moveTokens(txn, tokenIn, sender, pool.contract)
    const amountOut = moveTokens(txn, tokenOut, pool.contract, sender)
    const reserves = storageVariable(pool.contract, layout.reserves, START_TOKENS)
    txn.write(reserves, Math.max(1, reserves.value + (isForward ? amountIn : -amountOut)))
    txn.lock(pool.contract, layout.lock)
    txn.log(pool.contract, [topics.sync], words(reserves.value, START_TOKENS))
    const amounts = isForward ? [amountIn, 0, 0, amountOut] : [0, amountIn, amountOut, 0]
    txn.log(pool.contract, [topics.swap, state.router.word, sender.word], words(...amounts))

    const data = join(signatures.swapExact, words(amountIn, amountOut, 160, 0, 2 ** 40, 2), tokenIn.word, tokenOut.word)
    txn.call(state.router, data, words(32, 2, amountIn, amountOut), 1)
    const inner = { caller: state.router, depth: 1 }
    const pull = join(signatures.transferFrom, sender.word, pool.contract.word, words(amountIn))
    txn.call(tokenIn, pull, TRUE_WORD, 0.3, inner)
    txn.call(pool.contract, signatures.getReserves, words(START_TOKENS, START_TOKENS, 0), 0.05, {
      ...inner,
      opcode: OPCODE.staticCall,
    })
    txn.call(pool.contract, join(signatures.swap, words(amountOut, 0, 0, 128, 0)), NO_BYTES, 0.5, inner)
    const push = join(signatures.transfer, sender.word, words(amountOut))
    txn.call(tokenOut, push, TRUE_WORD, 0.2, { caller: pool.contract, depth: 2 })
    return txn.end(state.router, data)
  }

  function mint(): Txn {
    const txn = begin('mint', user(), 95_000, 350_000)
    const collection = pickZipf(state.collections, random)
    const { supply, owners, balances } = STORAGE_LAYOUT.collection
    const total = storageVariable(collection, supply)
    const id = total.value + 1
    txn.write(total, id)
    txn.write(uncachedMappingEntry(collection, owners, id), txn.sender.index + 1)
    const owned = mappingEntry(collection, balances, txn.sender, 0)
    txn.write(owned, owned.value + 1)
    txn.log(collection, [topics.transfer, ZERO_WORD, txn.sender.word, words(id)], NO_BYTES)
    const data = join(signatures.mint, txn.sender.word)
    txn.call(collection, data, words(id), 1)
    return txn.end(collection, data)
  }

  function moveTokens(txn: TxnBuilder, token: Contract, from: Account, to: Account): number {
    const { balances } = STORAGE_LAYOUT.token
    const source = mappingEntry(token, balances, from, START_TOKENS)
    const target = mappingEntry(token, balances, to, START_TOKENS)
    const amount = Math.min(amountOf(source), source.value)
    txn.write(source, source.value - amount)
    txn.write(target, target.value + amount)
    txn.log(token, [topics.transfer, from.word, to.word], words(amount))
    return amount
  }

  function begin(kind: Txn['kind'], sender: Account, gas: number, costNs: number): TxnBuilder {
    // Only contract calls can fail; a transfer without funds is never included in a block.
    const isSuccess = kind === 'transfer' || random.float() >= options.failShare
    return new TxnBuilder({ kind, sender, gas, costNs, isSuccess }, state, random, user)
  }
}

/** Picks the k-th item with a probability of about 1 / k, the distribution of account use on real chains. */
export function pickZipf<Item>(items: readonly Item[], random: Random): Item {
  // The inverse of the logarithm, which approximates the sums of 1 / k.
  const index = Math.floor((items.length + 1) ** random.float()) - 1
  return items[Math.min(index, items.length - 1)] as Item
}
