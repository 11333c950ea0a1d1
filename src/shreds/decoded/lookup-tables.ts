import { Buffer } from 'node:buffer'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'

/** The addresses that a transaction loads from lookup tables, or the tables that are not known. */
export type LoadedAddresses =
  | { readonly ok: true; readonly writable: readonly Uint8Array[]; readonly readonly: readonly Uint8Array[] }
  | { readonly ok: false; readonly unknownTables: readonly Uint8Array[] }

/** The content of an account, as the upstream has it. Undefined data: it does not exist, or the Address Lookup Table program does not own it. */
export type TableAccount = {
  readonly key: Uint8Array
  readonly data: Uint8Array | undefined
  /** The slot of this content; older content than what is known is ignored, and of two of one slot the shorter. */
  readonly slot: number
}

/**
 * Address lookup tables that occur in transactions: at most `tablesMax`; the one used least recently is replaced. The first transaction with an
 * unknown table requests it and does not wait: it is delivered without its loaded addresses.
 */
export type LookupTables = {
  resolve(transaction: Pick<ParsedTransaction, 'addressTableLookups'>): LoadedAddresses
  /** Takes the content of an account: the response to a request, or a change. */
  update(account: TableAccount): void
  /** Tables to load and to follow, at most so many, and those no longer needed, since the last call. */
  takeChanges(wantedMax: number): TableChanges
  readonly size: number
}

export type TableChanges = { readonly wanted: readonly Uint8Array[]; readonly dropped: readonly Uint8Array[] }

export type LookupTablesOptions = {
  readonly tablesMax: number
}

type Table = {
  readonly key: Uint8Array
  /** Undefined until its account has arrived, and when that is no lookup table. */
  addresses: Uint8Array | undefined
  slot: number
}

const NO_ADDRESSES: LoadedAddresses = { ok: true, writable: [], readonly: [] }
const ADDRESS_BYTES = 32

export function createLookupTables({ tablesMax }: LookupTablesOptions): LookupTables {
  /** By key, the least recently used first. */
  const tables = new Map<string, Table>()
  const wanted = new Set<Uint8Array>()
  let dropped: Uint8Array[] = []

  /** The table, as the most recently used one. */
  function use(key: Uint8Array): Table {
    const name = nameOf(key)
    let table = tables.get(name)
    if (table === undefined) {
      table = { key: Uint8Array.from(key), addresses: undefined, slot: -1 }
      wanted.add(table.key)
      if (tables.size >= tablesMax) dropOldest()
    } else tables.delete(name)
    tables.set(name, table)
    return table
  }

  function dropOldest(): void {
    const [name, table] = tables.entries().next().value as [string, Table]
    tables.delete(name)
    if (!wanted.delete(table.key)) dropped.push(table.key)
  }

  return {
    get size() {
      return tables.size
    },
    resolve({ addressTableLookups }) {
      if (addressTableLookups.length === 0) return NO_ADDRESSES
      const writable: Uint8Array[] = []
      const readonly: Uint8Array[] = []
      const unknownTables: Uint8Array[] = []
      for (const { accountKey, writableIndexes, readonlyIndexes } of addressTableLookups) {
        const { addresses } = use(accountKey)
        const isKnown =
          addresses !== undefined &&
          load(addresses, writableIndexes, writable) &&
          load(addresses, readonlyIndexes, readonly)
        if (!isKnown) unknownTables.push(accountKey)
      }
      return unknownTables.length === 0 ? { ok: true, writable, readonly } : { ok: false, unknownTables }
    },
    update({ key, data, slot }) {
      const table = tables.get(nameOf(key))
      if (table === undefined || slot < table.slot) return
      const addresses = data === undefined ? undefined : parseLookupTable(data)
      // A table only grows until it is closed, so the shorter of two contents of a slot is the older one.
      if (slot === table.slot && lengthOf(addresses) < lengthOf(table.addresses)) return
      table.slot = slot
      table.addresses = addresses
    },
    takeChanges(wantedMax) {
      const taken = wanted.values().take(wantedMax).toArray()
      for (const key of taken) wanted.delete(key)
      const changes = { wanted: taken, dropped }
      dropped = []
      return changes
    },
  }
}

function lengthOf(addresses: Uint8Array | undefined): number {
  return addresses?.length ?? -1
}

/** Adds the addresses at these indexes; false when the table is shorter, which it is until its latest extension has arrived. */
function load(addresses: Uint8Array, indexes: Uint8Array, to: Uint8Array[]): boolean {
  for (const index of indexes) {
    const at = index * ADDRESS_BYTES
    if (at >= addresses.length) return false
    to.push(addresses.subarray(at, at + ADDRESS_BYTES))
  }
  return true
}

/** The state of an account of the Address Lookup Table program: u32 1 for a table, then 52 bytes about its owner, and from here the addresses. */
const ADDRESSES_AT = 56
const IS_TABLE = 1
const ADDRESSES_MAX = 256

/** The addresses of a lookup table one after the other, or undefined when the account is something else. */
export function parseLookupTable(data: Uint8Array): Uint8Array | undefined {
  if (data.length < ADDRESSES_AT) return undefined
  const kind = new DataView(data.buffer, data.byteOffset, data.length).getUint32(0, true)
  const length = data.length - ADDRESSES_AT
  if (kind !== IS_TABLE || length % ADDRESS_BYTES !== 0 || length > ADDRESSES_MAX * ADDRESS_BYTES) return undefined
  return data.slice(ADDRESSES_AT)
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
}
