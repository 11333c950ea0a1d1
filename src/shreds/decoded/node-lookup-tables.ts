import type { Clock, Timer } from '../../core/clock.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { TableAccount } from './lookup-tables.ts'
import type { LookupTableSource } from './service.ts'

/** Calls a JSON-RPC method at a node; undefined when no node responds with a result in time. */
type AskNode = (method: string, params: readonly unknown[], withinMs: number) => Promise<unknown>

/** Address lookup tables from the upstream nodes, for ShredStream Decoded. Until nodes are followed none is loaded. */
export type FollowedLookupTables = LookupTableSource & {
  follow(ask: AskNode, deps: { readonly clock: Clock }): Disposable
}

const LOOKUP_TABLE_PROGRAM = 'AddressLookupTab1e1111111111111111111111111'
/** The limit of getMultipleAccounts. */
const ACCOUNTS_PER_CALL = 100
/** New tables are requested at once; known ones grow when they are extended, and are read again this often. */
const REFRESH_MS = 5000
const RESPONSE_MS = 5000

export function createLookupTableSource(): FollowedLookupTables {
  /** By address. */
  const followed = new Map<string, Uint8Array>()
  const listeners = new Set<(accounts: readonly TableAccount[]) => void>()
  let load: ((keys: readonly Uint8Array[]) => Promise<void>) | undefined

  return {
    change({ wanted, dropped }) {
      for (const key of dropped) followed.delete(encodeBase58(key))
      for (const key of wanted) followed.set(encodeBase58(key), key)
      if (wanted.length > 0) void load?.(wanted)
    },
    clear: () => followed.clear(),
    onAccounts(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    follow(ask, { clock }) {
      let timer: Timer | undefined
      let isClosed = false

      load = async (keys) => {
        const addresses = keys.map(encodeBase58)
        const options = { encoding: 'base64', commitment: 'processed' }
        const accounts = accountsOf(await ask('getMultipleAccounts', [addresses, options], RESPONSE_MS), keys)
        if (!isClosed && accounts.length > 0) for (const listener of listeners) listener(accounts)
      }

      async function refresh(): Promise<void> {
        const keys = [...followed.values()]
        for (let at = 0; at < keys.length && !isClosed; at += ACCOUNTS_PER_CALL)
          await load?.(keys.slice(at, at + ACCOUNTS_PER_CALL))
        if (isClosed) return
        timer = clock.setTimer(REFRESH_MS, () => void refresh())
        timer.unref?.()
      }
      void refresh()
      return {
        [Symbol.dispose]() {
          isClosed = true
          load = undefined
          timer?.cancel()
        },
      }
    },
  }
}

type AccountsResponse = {
  readonly context?: { readonly slot?: unknown }
  readonly value?: readonly ({ readonly owner?: unknown; readonly data?: unknown } | null)[]
}

/** Empty where the response is not one of getMultipleAccounts for these keys. */
function accountsOf(response: unknown, keys: readonly Uint8Array[]): TableAccount[] {
  const { context, value } = (response ?? {}) as AccountsResponse
  const slot = context?.slot
  if (typeof slot !== 'number' || !Array.isArray(value) || value.length !== keys.length) return []
  return keys.map((key, at) => {
    const { owner, data } = value[at] ?? {}
    const text = owner === LOOKUP_TABLE_PROGRAM && Array.isArray(data) ? data[0] : undefined
    return { key, slot, data: typeof text === 'string' ? Buffer.from(text, 'base64') : undefined }
  })
}
