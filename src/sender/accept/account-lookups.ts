import type { Clock } from '../../core/clock.ts'
import { NONCE_ACCOUNT_BYTES } from '../../solana/transaction/durable-nonce.ts'
import type { CallNode } from '../../upstreams/call-node.ts'

/** An account as a node reports it, with at most NONCE_ACCOUNT_BYTES of its data; null when it does not exist. */
export type Account = { readonly lamports: bigint; readonly owner: string; readonly data: Uint8Array } | null

/** An account in its state at a slot; 0 where the node does not name the slot. */
export type AccountAt = { readonly slot: number; readonly account: Account }

/**
 * Reads an account from a node. Concurrent reads are batched and shared, and the number of calls is bounded. Undefined when no node responds
 * in time or too many addresses wait.
 */
export type ReadAccount = (address: string) => Promise<AccountAt | undefined>

/** The longest that a transaction waits for a reading. */
const READ_MS_MAX = 300
/** Addresses that a node accepts in one getMultipleAccounts call. */
const BATCH = 100
const CALLS_MAX = 4
const WAITING_MAX = 1000
type Waiting = { readonly sinceMs: number; readonly result: PromiseWithResolvers<AccountAt | undefined> }

export function createAccountLookups({
  callNode,
  clock,
}: {
  readonly callNode: CallNode
  readonly clock: Clock
}): ReadAccount {
  /** Not yet in a call, in order. */
  const waiting = new Map<string, Waiting>()
  const reading = new Map<string, Promise<AccountAt | undefined>>()
  let calls = 0
  let isScheduled = false

  /** Deferred to a microtask, so that the payer and the nonce account of one transaction share a call. */
  function schedule(): void {
    if (isScheduled || calls >= CALLS_MAX || waiting.size === 0) return
    isScheduled = true
    queueMicrotask(() => {
      isScheduled = false
      void readBatch([...waiting].slice(0, BATCH)).finally(schedule)
      schedule()
    })
  }

  async function readBatch(batch: readonly (readonly [string, Waiting])[]): Promise<void> {
    for (const [address] of batch) waiting.delete(address)
    calls += 1
    // The time spent waiting for a call counts towards READ_MS_MAX.
    const oldestMs = batch[0]?.[1].sinceMs ?? 0
    const withinMs = Math.max(1, READ_MS_MAX - (clock.monotonicMs() - oldestMs))
    const config = {
      encoding: 'base64',
      commitment: 'processed',
      dataSlice: { offset: 0, length: NONCE_ACCOUNT_BYTES },
    }
    const response = await callNode('getMultipleAccounts', [batch.map(([address]) => address), config], withinMs)
    calls -= 1
    const { context, value } = (response ?? {}) as { context?: { slot?: unknown }; value?: unknown }
    const slot = typeof context?.slot === 'number' ? context.slot : 0
    const values: unknown[] = Array.isArray(value) && value.length === batch.length ? value : []
    for (const [at, [address, { result }]] of batch.entries()) {
      reading.delete(address)
      const account = accountOf(values[at])
      result.resolve(account === undefined ? undefined : { slot, account })
    }
  }

  return (address) => {
    const running = reading.get(address)
    if (running !== undefined) return running
    if (waiting.size >= WAITING_MAX) return Promise.resolve(undefined)
    const result = Promise.withResolvers<AccountAt | undefined>()
    waiting.set(address, { sinceMs: clock.monotonicMs(), result })
    reading.set(address, result.promise)
    schedule()
    return result.promise
  }
}

/** Undefined for a value that is neither an account nor null, which is treated like no response. */
function accountOf(value: unknown): Account | undefined {
  if (value === null) return null
  const { lamports, owner, data } = (value ?? {}) as { lamports?: unknown; owner?: unknown; data?: unknown }
  if (typeof lamports !== 'number' || !Number.isInteger(lamports) || lamports < 0 || typeof owner !== 'string')
    return undefined
  const text: unknown = Array.isArray(data) ? data[0] : undefined
  return typeof text === 'string' ? { lamports: BigInt(lamports), owner, data: Buffer.from(text, 'base64') } : undefined
}
