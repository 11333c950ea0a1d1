import type { Random } from '../../../core/random.ts'
import { createWireFields, locateFields } from '../../../solana/transaction/wire-fields.ts'
import { AccountTable } from './account-table.ts'
import { keyText, type TransactionFilter } from './filters.ts'
import type { DecodedTransaction, LoadedRange } from './source.ts'

/** Where the filters of one stream stand in the index. */
export type IndexedFilters<Owner> = {
  readonly owner: Owner
  readonly entries: readonly Entry<Owner>[]
  /** Only these match. */
  isActive: boolean
  /** Names of the filters that match the current transaction; always that of an only filter, so that no array is filled for it. */
  readonly names: Uint8Array[]
}

type Entry<Owner> = {
  readonly filter: TransactionFilter
  readonly filters: IndexedFilters<Owner>
  /** The transaction it was compared with last. */
  comparedWith: number
}

const PREFIXES = 65_536
const KEY_BYTES = 32
/** Accounts between two steps of `add` and `remove`. */
const STEP_ACCOUNTS = 256
/** So few accounts are looked up one by one in less time than `isDisjointFrom` takes. */
const LOOP_ACCOUNTS_MAX = 4
const fields = createWireFields()

/**
 * The filters of all streams by the accounts that they name, so that a transaction costs its own number of accounts, however many streams there are.
 * A filter stands under its included accounts, one of which must occur, else under one of its required accounts; one that names neither is compared
 * with every transaction.
 */
export class FilterIndex<Owner> {
  readonly #unselective = new Set<Entry<Owner>>()
  readonly #byAccount: AccountTable<Set<Entry<Owner>>>
  /** Number of indexed accounts by their first two bytes. */
  readonly #prefixes = new Uint32Array(PREFIXES)
  /** One bit for each of these numbers that is not zero: most accounts of a transaction are in no filter, and need no look-up. */
  readonly #prefixBits = new Uint32Array(PREFIXES / 32)
  readonly #accounts = new TransactionAccounts()
  /** Filters that match the current transaction. */
  readonly #matched: IndexedFilters<Owner>[] = []
  #transactions = 0
  #size = 0

  constructor(random: Random) {
    this.#byAccount = new AccountTable(random)
  }

  /** Number of active filters. */
  get size(): number {
    return this.#size
  }

  /** The filters of a stream, not in the index yet. */
  create(owner: Owner, filters: readonly TransactionFilter[]): IndexedFilters<Owner> {
    const entries: Entry<Owner>[] = []
    const names = filters.length === 1 ? filters.map(({ name }) => name) : []
    const created: IndexedFilters<Owner> = { owner, entries, isActive: false, names }
    for (const filter of filters) entries.push({ filter, filters: created, comparedWith: 0 })
    return created
  }

  /** Adds filters in short steps. They match once they are active. */
  *add({ entries }: IndexedFilters<Owner>): Generator<void, void> {
    for (const entry of entries) {
      yield
      if (isUnselective(entry.filter)) this.#unselective.add(entry)
      let accounts = 0
      for (const account of accountsOf(entry.filter)) {
        const same = this.#byAccount.find(account)
        if (same === undefined) {
          this.#byAccount.add(account, new Set([entry]))
          this.#countPrefix(account, 1)
        } else same.add(entry)
        if (++accounts % STEP_ACCOUNTS === 0) yield
      }
    }
  }

  /** Removes filters in short steps, also those of which only a part was added. They are not active. */
  *remove({ entries }: IndexedFilters<Owner>): Generator<void, void> {
    for (const entry of entries) {
      yield
      this.#unselective.delete(entry)
      let accounts = 0
      for (const account of accountsOf(entry.filter)) {
        if (++accounts % STEP_ACCOUNTS === 0) yield
        const same = this.#byAccount.find(account)
        if (!same?.delete(entry) || same.size > 0) continue
        this.#byAccount.delete(account)
        this.#countPrefix(account, -1)
      }
    }
  }

  setActive(filters: IndexedFilters<Owner>, isActive: boolean): void {
    if (filters.isActive === isActive) return
    filters.isActive = isActive
    this.#size += isActive ? filters.entries.length : -filters.entries.length
  }

  /** Calls `deliver` once for each owner with a filter that matches, with the names of those filters, which are valid until it returns. */
  match(transaction: DecodedTransaction, deliver: (owner: Owner, names: readonly Uint8Array[]) => void): void {
    const matched = this.#matched
    this.#transactions += 1
    try {
      this.#accounts.reset(transaction)
      for (const entry of this.#unselective) this.#compare(entry)
      if (this.#byAccount.size > 0) this.#compareByAccounts(transaction)
      for (let i = 0; i < matched.length; i++) {
        const { owner, entries, names } = matched[i] as IndexedFilters<Owner>
        deliver(owner, names)
        if (entries.length > 1) names.length = 0
      }
    } finally {
      // The last stream may end now: nothing of it or of the transaction is kept.
      matched.length = 0
      this.#accounts.reset(undefined)
    }
  }

  #compareByAccounts(transaction: DecodedTransaction): void {
    const { wire } = transaction
    if (wire === undefined) for (const key of transaction.parsed.staticKeys) this.#compareAt(key, 0)
    else {
      locateFields(wire, fields)
      const { keysAt, keysEnd } = fields
      for (let at = keysAt; at < keysEnd; at += KEY_BYTES) this.#compareAt(wire, at)
    }
    const { loaded } = transaction
    if (loaded === undefined) {
      for (const key of transaction.loadedWritable) this.#compareAt(key, 0)
      for (const key of transaction.loadedReadonly) this.#compareAt(key, 0)
      return
    }
    const end = loadedEnd(loaded)
    for (let at = loaded.at; at < end; at += KEY_BYTES) this.#compareAt(loaded.bytes, at)
  }

  /** With the filters that are found under the account at `at`. */
  #compareAt(bytes: Uint8Array, at: number): void {
    const second = bytes[at + 1] as number
    const word = this.#prefixBits[((bytes[at] as number) << 3) | (second >> 5)] as number
    if (((word >>> (second & 31)) & 1) === 0) return
    const entries = this.#byAccount.get(bytes, at)
    if (entries !== undefined) for (const entry of entries) this.#compare(entry)
  }

  #compare(entry: Entry<Owner>): void {
    const { filter, filters } = entry
    if (entry.comparedWith === this.#transactions || !filters.isActive) return
    entry.comparedWith = this.#transactions
    if (!matches(filter, this.#accounts)) return
    const isOnly = filters.entries.length === 1
    if (isOnly || filters.names.length === 0) this.#matched.push(filters)
    if (!isOnly) filters.names.push(filter.name)
  }

  #countPrefix(account: string, change: 1 | -1): void {
    const [first, second] = [account.charCodeAt(0), account.charCodeAt(1)]
    const at = first * 256 + second
    const count = (this.#prefixes[at] as number) + change
    this.#prefixes[at] = count
    const word = (first << 3) | (second >> 5)
    const bit = 1 << (second & 31)
    const bits = this.#prefixBits[word] as number
    this.#prefixBits[word] = count > 0 ? bits | bit : bits & ~bit
  }
}

function isUnselective({ include, required }: TransactionFilter): boolean {
  return include.size === 0 && required.size === 0
}

/** The accounts under which a filter is found. */
function accountsOf({ include, required }: TransactionFilter): Iterable<string> {
  return include.size > 0 ? include : required.values().take(1)
}

/** The static and loaded accounts of the current transaction; their texts are made only where a filter needs all of them. */
class TransactionAccounts {
  #transaction: DecodedTransaction | undefined
  #isVote: boolean | undefined
  #texts: Set<string> | undefined

  reset(transaction: DecodedTransaction | undefined): void {
    this.#transaction = transaction
    this.#isVote = undefined
    this.#texts = undefined
  }

  get isVote(): boolean {
    this.#isVote ??= this.#transaction?.isVote === true
    return this.#isVote
  }

  get texts(): ReadonlySet<string> {
    this.#texts ??= this.#transaction === undefined ? new Set() : textsOf(this.#transaction)
    return this.#texts
  }
}

function textsOf(transaction: DecodedTransaction): Set<string> {
  const { wire } = transaction
  const texts = new Set<string>()
  if (wire === undefined) for (const key of transaction.parsed.staticKeys) texts.add(keyText(key))
  else {
    locateFields(wire, fields)
    const { keysAt, keysEnd } = fields
    for (let at = keysAt; at < keysEnd; at += KEY_BYTES) texts.add(keyText(wire, at))
  }
  const { loaded } = transaction
  if (loaded === undefined) {
    for (const key of transaction.loadedWritable) texts.add(keyText(key))
    for (const key of transaction.loadedReadonly) texts.add(keyText(key))
    return texts
  }
  const end = loadedEnd(loaded)
  for (let at = loaded.at; at < end; at += KEY_BYTES) texts.add(keyText(loaded.bytes, at))
  return texts
}

function loadedEnd({ at, writable, readonly }: LoadedRange): number {
  return at + (writable + readonly) * KEY_BYTES
}

/** As Yellowstone: the vote flag, all required accounts, none of the excluded ones. One of the included accounts occurs, since the filter was found by it. */
function matches({ vote, required, exclude }: TransactionFilter, accounts: TransactionAccounts): boolean {
  if (vote !== undefined && vote !== accounts.isVote) return false
  if (required.size > 0 && !required.isSubsetOf(accounts.texts)) return false
  if (exclude.size === 0) return true
  if (exclude.size > LOOP_ACCOUNTS_MAX) return exclude.isDisjointFrom(accounts.texts)
  for (const account of exclude) if (accounts.texts.has(account)) return false
  return true
}
