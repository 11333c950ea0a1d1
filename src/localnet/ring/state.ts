import { type Random, randomInt } from '../../core/random.ts'
import { createSlabAllocator } from '../../core/slab-allocator.ts'
import { fromHex, type Hex, toHex } from '../../evm/hex.ts'
import { keccak256 } from '../../evm/keccak256.ts'

/** An address of the simulated chain. */
export type Account = {
  /** A unique number across accounts and contracts. */
  readonly index: number
  readonly address: Uint8Array
  readonly codeHash: Uint8Array
  /** The address as a 32-byte word, as in topics and arguments. */
  readonly word: Uint8Array
  nonce: number
  /** In gwei, so that a number is exact. */
  balanceGwei: number
}

/** A contract with storage. A storage slot is one object for the lifetime of the chain, so that conflicts are found by identity. */
export type Contract = Account & { readonly slots: Map<number, Slot> }

export type Slot = { readonly contract: Contract; readonly key: Uint8Array; value: number }

/** A pool trades two tokens. */
export type Pool = { readonly contract: Contract; readonly token0: Contract; readonly token1: Contract }

export type EvmState = {
  readonly users: readonly Account[]
  readonly tokens: readonly Contract[]
  readonly pools: readonly Pool[]
  readonly collections: readonly Contract[]
  readonly router: Contract
  /** Stores the hashes of past blocks; written in the prologue of every block. EIP-2935. */
  readonly history: Contract
  readonly feeRecipient: Account
  /** Display names of the contracts. */
  readonly labels: ReadonlyMap<Hex, string>
}

const STATE_SIZE = { users: 2000, tokens: 12, pools: 8, collections: 4 } as const

/** Above every account index. A slot's id combines its storage position with the account indexes of its mapping keys. */
const INDEX_MAX = 2 ** 14
const START_BALANCE_GWEI = 1_000_000_000_000
const EMPTY_CODE_HASH = keccak256(new Uint8Array(0))

/** The genesis state: accounts, contracts and pools; the same for the same seed. */
export function createEvmState(random: Random): EvmState {
  const labels = new Map<Hex, string>()
  let accounts = 0
  const account = (address: Uint8Array, codeHash: Uint8Array): Account => createAccount(accounts++, address, codeHash)
  const contract = (label: string, address = random.bytes(20)): Contract => {
    labels.set(toHex(address), label)
    return { ...account(address, random.bytes(32)), slots: new Map() }
  }
  const list = <Item>(count: number, make: (at: number) => Item): Item[] =>
    Array.from({ length: count }, (_, at) => make(at))
  const tokens = list(STATE_SIZE.tokens, (at) => contract(`Token ${at + 1}`))
  return {
    users: list(STATE_SIZE.users, () => account(random.bytes(20), EMPTY_CODE_HASH)),
    tokens,
    pools: list(STATE_SIZE.pools, (at) => {
      // The first pools trade the first tokens, which are the most used.
      const first = Math.min(tokens.length - 2, at >> 1)
      const token0 = tokens[first] as Contract
      const token1 = tokens[first + 1 + (at & 1 ? randomInt(random, tokens.length - first - 1) : 0)] as Contract
      return { contract: contract(`Pool ${at + 1}`), token0, token1 }
    }),
    collections: list(STATE_SIZE.collections, (at) => contract(`Collection ${at + 1}`)),
    router: contract('Router'),
    history: contract('Block hashes', fromHex('0000f90827f1c53a10cb7a02335b175320002935')),
    feeRecipient: account(random.bytes(20), EMPTY_CODE_HASH),
    labels,
  }
}

function createAccount(index: number, address: Uint8Array, codeHash: Uint8Array): Account {
  const word = new Uint8Array(32)
  word.set(address, 12)
  return { index, address, codeHash, word, nonce: 0, balanceGwei: START_BALANCE_GWEI }
}

/** A variable at a fixed position of a contract's storage. */
export function storageVariable(contract: Contract, position: number, startValue = 0): Slot {
  return slotOf(contract, -1 - position, () => wordOf(position), startValue)
}

/** An entry of a mapping: its position is the hash of the key and the mapping's position, as in Solidity's storage layout. */
export function mappingEntry(contract: Contract, position: number, of: Account, startValue: number): Slot {
  return slotOf(contract, position * INDEX_MAX ** 2 + of.index, () => hashPair(of.word, wordOf(position)), startValue)
}

/** An entry of a nested mapping. */
export function nestedMappingEntry(
  contract: Contract,
  position: number,
  [outer, inner]: readonly [Account, Account],
  startValue: number,
): Slot {
  const id = (position * INDEX_MAX + outer.index) * INDEX_MAX + inner.index
  return slotOf(contract, id, () => hashPair(inner.word, hashPair(outer.word, wordOf(position))), startValue)
}

/** An entry with a number as key that is used only once, so it is not cached. */
export function uncachedMappingEntry(contract: Contract, position: number, number: number): Slot {
  return { contract, key: hashPair(wordOf(number), wordOf(position)), value: 0 }
}

/** A number as a 32-byte word. */
function wordOf(value: number): Uint8Array {
  const word = new Uint8Array(32)
  writeWord(word, 0, value)
  return word
}

/** Writes a number as a 32-byte word into zeros. */
export function writeWord(bytes: Uint8Array, at: number, value: number): void {
  for (let byte = at + 31, left = value; left > 0; byte--, left = Math.floor(left / 256)) bytes[byte] = left % 256
}

/** Keys of slots are kept for ever, tens of thousands of them: parts of larger buffers take half the memory of buffers of their own. */
const allocateKey = createSlabAllocator()

function keep(key: Uint8Array): Uint8Array {
  const kept = allocateKey(key.length)
  kept.set(key)
  return kept
}

function slotOf(contract: Contract, id: number, key: () => Uint8Array, startValue: number): Slot {
  const known = contract.slots.get(id)
  if (known !== undefined) return known
  const slot = { contract, key: keep(key()), value: startValue }
  contract.slots.set(id, slot)
  return slot
}

function hashPair(first: Uint8Array, second: Uint8Array): Uint8Array {
  const pair = new Uint8Array(64)
  pair.set(first)
  pair.set(second, 32)
  return keccak256(pair)
}

/** Numbers as concatenated 32-byte words. */
export function words(...values: number[]): Uint8Array {
  const bytes = Buffer.allocUnsafe(values.length * 32).fill(0)
  for (const [at, value] of values.entries()) writeWord(bytes, at * 32, value)
  return bytes
}

export function join(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
