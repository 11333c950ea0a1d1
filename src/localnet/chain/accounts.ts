import type { Account, AccountWrite } from './model.ts'

/**
 * Every account with the versions that some commitment can still read. A read names a slot and returns the account as
 * of the end of that slot. Below the root (the newest finalized slot) only the newest version of an account is kept.
 */
export class AccountStore {
  readonly #versions = new Map<string, Version[]>()
  readonly #byOwner = new Map<string, Set<string>>()
  /** Addresses written in slots above the root. */
  readonly #touched = new Map<number, Set<string>>()

  get size(): number {
    return this.#versions.size
  }

  write({ address, account, slot }: AccountWrite): void {
    const versions = this.#versions.get(address) ?? []
    if (versions.at(-1)?.slot === slot) this.#dropNewest(address, versions)
    versions.push({ slot, account })
    this.#versions.set(address, versions)
    if (account) addTo(this.#byOwner, account.owner, address)
    addTo(this.#touched, slot, address)
  }

  /** Adds an account that is visible from slot 0 on, for the state of a snapshot. */
  load(address: string, account: Account): void {
    this.#versions.set(address, [{ slot: 0, account }])
    addTo(this.#byOwner, account.owner, address)
  }

  read(address: string, slot: number): Account | null {
    return accountAt(this.#versions.get(address), slot)
  }

  /** The account including writes of the open slot. */
  readNewest(address: string): Account | null {
    return this.#versions.get(address)?.at(-1)?.account ?? null
  }

  /** Addresses written in slots above `slot`, which must not be below the root. */
  touchedAfter(slot: number): Set<string> {
    const touched = new Set<string>()
    for (const [written, addresses] of this.#touched) if (written > slot) for (const one of addresses) touched.add(one)
    return touched
  }

  *ownedBy(owner: string, slot: number): Generator<readonly [string, Account]> {
    for (const address of this.#byOwner.get(owner) ?? []) {
      const account = this.read(address, slot)
      if (account?.owner === owner) yield [address, account]
    }
  }

  *all(slot: number): Generator<readonly [string, Account]> {
    for (const [address, versions] of this.#versions) {
      const account = accountAt(versions, slot)
      if (account) yield [address, account]
    }
  }

  *allNewest(): Generator<readonly [string, Account]> {
    yield* this.all(Number.MAX_SAFE_INTEGER)
  }

  /** Drops the versions that no read at `slot` or above can see. Slots are rooted in order. */
  root(slot: number): void {
    const touched = this.#touched.get(slot)
    this.#touched.delete(slot)
    for (const address of touched ?? []) {
      const versions = this.#versions.get(address)
      if (!versions) continue
      while (versions.length > 1 && (versions[1] as Version).slot <= slot)
        this.#unindex(address, versions.shift(), versions)
      const only = versions[0] as Version
      if (versions.length === 1 && only.account === null && only.slot <= slot) this.#versions.delete(address)
    }
  }

  #dropNewest(address: string, versions: Version[]): void {
    this.#unindex(address, versions.pop(), versions)
  }

  /** Removes the address from its owner's index unless a remaining version has the same owner. */
  #unindex(address: string, dropped: Version | undefined, remaining: readonly Version[]): void {
    const owner = dropped?.account?.owner
    if (owner === undefined || remaining.some(({ account }) => account?.owner === owner)) return
    const addresses = this.#byOwner.get(owner)
    addresses?.delete(address)
    if (addresses?.size === 0) this.#byOwner.delete(owner)
  }
}

type Version = { readonly slot: number; readonly account: Account | null }

function accountAt(versions: readonly Version[] | undefined, slot: number): Account | null {
  if (!versions) return null
  for (let i = versions.length - 1; i >= 0; i--) {
    const version = versions[i] as Version
    if (version.slot <= slot) return version.account
  }
  return null
}

function addTo<Key>(index: Map<Key, Set<string>>, key: Key, address: string): void {
  const addresses = index.get(key)
  if (addresses) addresses.add(address)
  else index.set(key, new Set([address]))
}
