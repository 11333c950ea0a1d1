import { createWireFields, locateFields } from '../../../solana/transaction/wire-fields.ts'
import { keyText, type TransactionFilter } from './filters.ts'
import type { DecodedTransaction } from './source.ts'

/** Where the filters of one stream stand in the index. */
export type IndexedFilters<Owner> = {
  readonly owner: Owner
  readonly entries: readonly Entry<Owner>[]
  /** Only these match. */
  isActive: boolean
  /** Names of the filters that match the current transaction. */
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
const fields = createWireFields()

/**
 * The filters of all streams by the accounts that they name, so that a transaction costs its own number of accounts, however many streams there are.
 * A filter stands under its included accounts, one of which must occur, else under one of its required accounts; one that names neither is compared
 * with every transaction.
 */
export class FilterIndex<Owner> {
  readonly #unselective = new Set<Entry<Owner>>()
  readonly #byAccount = new Map<string, Set<Entry<Owner>>>()
  /** Number of indexed accounts by their first two bytes: most accounts of a transaction are in no filter, and need no look-up. */
  readonly #prefixes = new Uint32Array(PREFIXES)
  #transactions = 0
  #size = 0

  /** Number of active filters. */
  get size(): number {
    return this.#size
  }

  /** The filters of a stream, not in the index yet. */
  create(owner: Owner, filters: readonly TransactionFilter[]): IndexedFilters<Owner> {
    const entries: Entry<Owner>[] = []
    const created: IndexedFilters<Owner> = { owner, entries, isActive: false, names: [] }
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
        const same = this.#byAccount.get(account)
        if (same === undefined) {
          this.#byAccount.set(account, new Set([entry]))
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
        const same = this.#byAccount.get(account)
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

  /** Calls `deliver` once for each owner with a filter that matches, with the names of those filters. */
  match(transaction: DecodedTransaction, deliver: (owner: Owner, names: readonly Uint8Array[]) => void): void {
    const number = ++this.#transactions
    const matched: IndexedFilters<Owner>[] = []
    const accounts = new TransactionAccounts(transaction)
    const compare = (entry: Entry<Owner>) => {
      if (entry.comparedWith === number || !entry.filters.isActive) return
      entry.comparedWith = number
      if (!matches(entry.filter, transaction, accounts)) return
      if (entry.filters.names.length === 0) matched.push(entry.filters)
      entry.filters.names.push(entry.filter.name)
    }
    for (const entry of this.#unselective) compare(entry)
    if (this.#byAccount.size > 0) {
      accounts.forEach((bytes, at) => {
        if (this.#prefixes[prefixOf(bytes[at] as number, bytes[at + 1] as number)] === 0) return
        const entries = this.#byAccount.get(keyText(bytes, at))
        if (entries !== undefined) for (const entry of entries) compare(entry)
      })
    }
    for (const { owner, names } of matched) {
      deliver(owner, names)
      names.length = 0
    }
  }

  #countPrefix(account: string, change: number): void {
    const at = prefixOf(account.charCodeAt(0), account.charCodeAt(1))
    this.#prefixes[at] = (this.#prefixes[at] as number) + change
  }
}

function isUnselective({ include, required }: TransactionFilter): boolean {
  return include.size === 0 && required.size === 0
}

/** The accounts under which a filter is found. */
function accountsOf({ include, required }: TransactionFilter): Iterable<string> {
  return include.size > 0 ? include : required.values().take(1)
}

function prefixOf(first: number, second: number): number {
  return first * 256 + second
}

/** The static and loaded accounts of a transaction; their texts are made only where a filter needs all of them. */
class TransactionAccounts {
  readonly #transaction: DecodedTransaction
  #texts: Set<string> | undefined

  constructor(transaction: DecodedTransaction) {
    this.#transaction = transaction
  }

  /** An account is the 32 bytes at `at`. */
  forEach(visit: (bytes: Uint8Array, at: number) => void): void {
    const { wire, loadedWritable, loadedReadonly } = this.#transaction
    if (wire === undefined) for (const key of this.#transaction.parsed.staticKeys) visit(key, 0)
    else {
      locateFields(wire, fields)
      const { keysAt, blockhashAt } = fields
      for (let at = keysAt; at < blockhashAt; at += KEY_BYTES) visit(wire, at)
    }
    for (const key of loadedWritable) visit(key, 0)
    for (const key of loadedReadonly) visit(key, 0)
  }

  get texts(): ReadonlySet<string> {
    if (this.#texts === undefined) {
      const texts = new Set<string>()
      this.forEach((bytes, at) => void texts.add(keyText(bytes, at)))
      this.#texts = texts
    }
    return this.#texts
  }
}

/** As Yellowstone: the vote flag, all required accounts, none of the excluded ones. One of the included accounts occurs, since the filter was found by it. */
function matches(
  { vote, required, exclude }: TransactionFilter,
  transaction: DecodedTransaction,
  accounts: TransactionAccounts,
): boolean {
  if (vote !== undefined && vote !== transaction.isVote) return false
  if (required.size > 0 && !required.isSubsetOf(accounts.texts)) return false
  return exclude.size === 0 || exclude.isDisjointFrom(accounts.texts)
}
