import type { Clock, Timer } from '../../core/clock.ts'
import { delay } from '../../platform/process/clock.ts'
import type { CallNode } from '../../upstreams/call-node.ts'
import { type Awaitable, mapAwaitable } from './awaitable.ts'

type State = 'fresh' | 'expired' | 'unknown'

/** Whether a transaction with this blockhash can still land. `unknown` when no node responds in time; the transaction is then accepted. */
export type Freshness = Disposable & {
  /** `blockhash` is base58. Synchronous when the state is known. Does not wait for a second lookup when it is a nonce. */
  check(blockhash: string, isNonce?: boolean): Awaitable<State>
}

export type FreshnessDeps = {
  readonly callNode: CallNode
  readonly clock: Clock
  /** The length of a slot. */
  readonly slotMs: () => number
  /** The newest slot of any node. */
  readonly bestSlot: () => number
  /** Transactions that wait for the second lookup of their blockhash; beyond them the first one decides. */
  readonly waitingMax: number
}

/** `isUnconfirmed`: one lookup found it expired; that node may not have had the block yet. */
type CachedState = { readonly at: number; readonly state: State; readonly isUnconfirmed: boolean }

/** A sixth of the blocks for which a blockhash is valid. */
const FRESH_SLOTS = 25
/** From this age on `fresh` is renewed in the background, while the known state is still used. */
const RENEW_SLOTS = 7.5
/** Short, because a node that is slightly behind does not know the newest blockhash yet. */
const EXPIRED_SLOTS = 1
const UNKNOWN_MS = 1000
/** A node that is further behind the others may not know a blockhash or an account because it is new. */
export const BEHIND_SLOTS_MAX = 2
const CALL_MS_MAX = 400
const KNOWN_MAX = 4096
/** Concurrent isBlockhashValid calls; beyond them a blockhash is `unknown`. */
const LOOKUPS_MAX = 256
/** The newest blockhash is polled twice in a slot, so that none is missed, for POLL_FOR_MS after each transaction. */
const POLL_SLOTS = 0.5
/** However short the slots are. */
const POLL_MS_MIN = 50
const POLL_FOR_MS = 60_000
/** A polled blockhash older than this is not used to derive the current height. */
const POLL_GOOD_SLOTS = 12.5
/** Blocks for which a blockhash is valid (agave: MAX_PROCESSING_AGE). */
const AGE_BLOCKS_MAX = 150

/**
 * Polls the newest blockhash and records the height up to which it is valid, so that most transactions are checked from memory. A blockhash
 * it has not seen is looked up at a node, and the result cached for a short time. One that was never known may be so new that the node does not have it
 * yet: it is looked up again a slot later, before it counts as expired.
 */
export function createFreshness({ callNode, clock, slotMs, bestSlot, waitingMax }: FreshnessDeps): Freshness {
  const known = new Map<string, CachedState>()
  const lookups = new Map<string, Promise<State>>()
  const secondLookups = new Map<string, Promise<State>>()
  /** Blockhashes that were the newest, with the last height at which they are valid. */
  const seen = new Map<string, number>()
  let newest = { lastHeight: 0, at: Number.NEGATIVE_INFINITY }
  let usedAtMs = Number.NEGATIVE_INFINITY
  let isPolling = false
  let waitingForSecond = 0

  async function poll(): Promise<void> {
    const nowMs = clock.monotonicMs()
    if (isPolling || nowMs - usedAtMs > POLL_FOR_MS) return
    isPolling = true
    const response = await callNode('getLatestBlockhash', [{ commitment: 'processed' }], CALL_MS_MAX)
    isPolling = false
    const { blockhash, lastValidBlockHeight } = ((response as { value?: object } | undefined)?.value ?? {}) as {
      blockhash?: unknown
      lastValidBlockHeight?: unknown
    }
    if (typeof blockhash !== 'string' || typeof lastValidBlockHeight !== 'number') return
    newest = { lastHeight: lastValidBlockHeight, at: nowMs }
    remember(seen, blockhash, lastValidBlockHeight)
  }

  /** The state from memory; the current height is derived from the newest blockhash. */
  function cachedState(key: string): State | undefined {
    const lastHeight = seen.get(key)
    const nowMs = clock.monotonicMs()
    if (lastHeight !== undefined && nowMs - newest.at < POLL_GOOD_SLOTS * slotMs()) {
      return newest.lastHeight - lastHeight < AGE_BLOCKS_MAX ? 'fresh' : undefined
    }
    const cached = known.get(key)
    if (cached === undefined) return undefined
    return nowMs - cached.at < livesMs(cached.state) ? cached.state : undefined
  }

  function livesMs(state: State): number {
    if (state === 'unknown') return UNKNOWN_MS
    return (state === 'fresh' ? FRESH_SLOTS : EXPIRED_SLOTS) * slotMs()
  }

  async function fetchState(key: string): Promise<State> {
    const sinceMs = clock.monotonicMs()
    const state = await lookUp(key)
    const other = known.get(key)
    // Another node has found it meanwhile.
    if (other?.state === 'fresh' && other.at >= sinceMs) return 'fresh'
    const isUnconfirmed = state === 'expired' && wasNeverKnown(key)
    remember(known, key, { at: clock.monotonicMs(), state, isUnconfirmed })
    return state
  }

  async function lookUpAgain(key: string): Promise<State> {
    await delay(clock, slotMs())
    // It may have been the newest in the meantime. A node that does not respond, or is behind, does not contradict the first one.
    const state = seen.has(key) || (await lookUp(key)) === 'fresh' ? 'fresh' : 'expired'
    remember(known, key, { at: clock.monotonicMs(), state, isUnconfirmed: false })
    return state
  }

  async function waitForSecond(key: string): Promise<State> {
    const lookup = secondLookups.get(key) ?? lookUpAgain(key).finally(() => secondLookups.delete(key))
    secondLookups.set(key, lookup)
    waitingForSecond += 1
    return lookup.finally(() => {
      waitingForSecond -= 1
    })
  }

  async function lookUp(key: string): Promise<State> {
    return stateOf(await callNode('isBlockhashValid', [key, { commitment: 'processed' }], CALL_MS_MAX))
  }

  /** Whether this blockhash was never the newest one and no earlier lookup found it valid or expired. */
  function wasNeverKnown(key: string): boolean {
    const before = known.get(key)?.state
    return !seen.has(key) && before !== 'fresh' && before !== 'expired'
  }

  function stateOf(response: unknown): State {
    const { context, value } = (response ?? {}) as { context?: { slot?: unknown }; value?: unknown }
    if (value === true) return 'fresh'
    const isBehind = bestSlot() - Number(context?.slot) > BEHIND_SLOTS_MAX
    return value === false && !isBehind ? 'expired' : 'unknown'
  }

  /** Undefined when too many calls are running. */
  function refresh(key: string): Promise<State> | undefined {
    const running = lookups.get(key)
    if (running !== undefined || lookups.size >= LOOKUPS_MAX) return running
    const lookup = fetchState(key).finally(() => lookups.delete(key))
    lookups.set(key, lookup)
    return lookup
  }

  function isOld(key: string): boolean {
    return clock.monotonicMs() - (known.get(key)?.at ?? Number.NEGATIVE_INFINITY) >= RENEW_SLOTS * slotMs()
  }

  let timer: Timer | undefined
  function pollNext(): void {
    timer = clock.setTimer(Math.max(POLL_MS_MIN, POLL_SLOTS * slotMs()), () => {
      pollNext()
      void poll()
    })
    timer.unref?.()
  }
  pollNext()

  return {
    check(key, isNonce = false) {
      usedAtMs = clock.monotonicMs()
      const cached = cachedState(key)
      if (cached === 'fresh' && !seen.has(key) && isOld(key)) void refresh(key)
      return mapAwaitable(cached ?? refresh(key) ?? 'unknown', (state) => {
        const waits =
          state === 'expired' && known.get(key)?.isUnconfirmed === true && !isNonce && waitingForSecond < waitingMax
        return waits ? waitForSecond(key) : state
      })
    },
    [Symbol.dispose]: () => timer?.cancel(),
  }
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= KNOWN_MAX) return
    map.delete(oldest)
  }
}
