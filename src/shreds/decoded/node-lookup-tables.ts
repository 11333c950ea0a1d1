import type { Timer } from '../../core/clock.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { TableAccount } from './lookup-tables.ts'
import type { OpenStream } from './node-streams/followed-stream.ts'
import { type AccountUpdate, subscribeTables } from './node-streams/table-subscription.ts'
import type { LookupTableSource } from './service.ts'

/** Calls a JSON-RPC method at a node; undefined when no node responds with a result in time. A function of `upstreams`, which this module does not import. */
type CallNode = (method: string, params: readonly unknown[], withinMs: number) => Promise<unknown>

/** Address lookup tables from the upstream nodes, for ShredStream Decoded. Until nodes are followed none is loaded. */
export type FollowedLookupTables = LookupTableSource & {
  follow(nodes: TableNodes, deps: BaseDeps): Disposable
}

export type TableNodes = {
  readonly callNode: CallNode
  /** Opens a stream at a node with gRPC. */
  readonly open: OpenStream
}

const LOOKUP_TABLE_PROGRAM = 'AddressLookupTab1e1111111111111111111111111'
/** The limit of getMultipleAccounts. */
const ACCOUNTS_PER_CALL = 100
/** Accounts of the subscription; the others are read again and again. */
const SUBSCRIBED_MAX = 10_000
/** How often tables are read again that no subscription covers, because they grow when they are extended. */
const POLL_MS = 5000
/** How often all are read again, should a node have omitted a change. */
const REFRESH_MS = 60_000
const RESPONSE_MS = 5000

/**
 * A table is loaded with getMultipleAccounts when it first occurs, and followed by a subscription at a node. When the subscription begins, or begins
 * again after a loss, all tables are read again. While there is none they are read every POLL_MS.
 */
export function createLookupTableSource(): FollowedLookupTables {
  /** By address. */
  const followed = new Map<string, Uint8Array>()
  const listeners = new Set<(accounts: readonly TableAccount[]) => void>()
  let running: Following | undefined
  const publish = (accounts: readonly TableAccount[]): void => {
    if (accounts.length > 0) for (const listener of listeners) listener(accounts)
  }

  return {
    change({ wanted, dropped }) {
      for (const key of dropped) followed.delete(encodeBase58(key))
      for (const key of wanted) followed.set(encodeBase58(key), key)
      running?.changed(wanted)
    },
    clear() {
      followed.clear()
      running?.changed([])
    },
    onAccounts(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    follow(nodes, deps) {
      const started = startFollowing(followed, nodes, deps, publish)
      running = started
      return {
        [Symbol.dispose]() {
          running = undefined
          started[Symbol.dispose]()
        },
      }
    },
  }
}

type Following = Disposable & { changed(wanted: readonly Uint8Array[]): void }

function startFollowing(
  followed: ReadonlyMap<string, Uint8Array>,
  { callNode, open }: TableNodes,
  deps: BaseDeps,
  publish: (accounts: readonly TableAccount[]) => void,
): Following {
  const { clock } = deps
  let subscribed: ReadonlySet<string> = new Set()
  /** In the subscription since the node has confirmed the last change of it. */
  let unconfirmed = new Set<string>()
  let isStale = true
  let refreshedMs = clock.monotonicMs()
  let timer: Timer | undefined
  let isClosed = false

  async function load(keys: readonly Uint8Array[]): Promise<void> {
    for (let at = 0; at < keys.length && !isClosed; at += ACCOUNTS_PER_CALL) {
      const some = keys.slice(at, at + ACCOUNTS_PER_CALL)
      const options = { encoding: 'base64', commitment: 'processed' }
      const response = await callNode('getMultipleAccounts', [some.map(encodeBase58), options], RESPONSE_MS)
      if (!isClosed) publish(accountsOf(response, some))
    }
  }

  function onAccount(update: AccountUpdate): void {
    const { key, slot, data, owner } = update
    if (!followed.has(encodeBase58(key))) return
    publish([{ key, slot, data: encodeBase58(owner) === LOOKUP_TABLE_PROGRAM ? data : undefined }])
  }

  /** Changes before the node followed a table have not arrived: after a loss of all, later of the new ones. */
  function onCurrent(): void {
    const keys = isStale ? [...followed.values()] : [...unconfirmed].flatMap((address) => followed.get(address) ?? [])
    isStale = false
    unconfirmed = new Set()
    void load(keys)
  }

  const subscription = subscribeTables({ ...deps, open }, { onAccount, onCurrent, onLost: () => void (isStale = true) })

  function subscribe(): void {
    const addresses = [...followed.keys().take(SUBSCRIBED_MAX)]
    if (addresses.length === subscribed.size && addresses.every((address) => subscribed.has(address))) return
    for (const address of addresses) if (!subscribed.has(address)) unconfirmed.add(address)
    subscribed = new Set(addresses)
    subscription.set(addresses)
  }

  async function poll(): Promise<void> {
    const nowMs = clock.monotonicMs()
    const isDue = nowMs - refreshedMs >= REFRESH_MS
    if (isDue) refreshedMs = nowMs
    const isCovered = (address: string) => subscription.isOpen && !isDue && subscribed.has(address)
    await load([...followed].flatMap(([address, key]) => (isCovered(address) ? [] : [key])))
    if (isClosed) return
    timer = clock.setTimer(POLL_MS, () => void poll())
    timer.unref?.()
  }

  subscribe()
  void poll()
  return {
    changed(wanted) {
      subscribe()
      if (wanted.length > 0) void load(wanted)
    },
    [Symbol.dispose]() {
      isClosed = true
      timer?.cancel()
      subscription[Symbol.dispose]()
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
