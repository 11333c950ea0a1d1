import type { Clock } from '../../core/clock.ts'
import { NONCE_ACCOUNT_BYTES } from '../../solana/transaction/durable-nonce.ts'
import type { AskNode } from '../dispatch/node-call.ts'

/** An account as a node reports it, with no more of its data than a nonce account has; null where there is none. */
export type Account = { readonly lamports: bigint; readonly owner: string; readonly data: Uint8Array } | null

/**
 * Reads accounts from a node: many in one call, each at most once at a time, a bounded number of calls. Undefined when no node responds in time,
 * or when too many addresses wait.
 */
export type ReadAccount = (address: string) => Promise<Account | undefined>

/** A transaction waits no longer than this for a reading. */
const READ_MS_MAX = 300
/** A node accepts so many addresses in one call. */
const BATCH = 100
const CALLS_MAX = 4
const WAITING_MAX = 1000
type Waiting = { readonly sinceMs: number; readonly result: PromiseWithResolvers<Account | undefined> }

export function createAccountLookups({ ask, clock }: { readonly ask: AskNode; readonly clock: Clock }): ReadAccount {
  /** Not asked for yet, in order. */
  const waiting = new Map<string, Waiting>()
  const reading = new Map<string, Promise<Account | undefined>>()
  let calls = 0
  let isScheduled = false

  /** Once per turn, so that the payer and the nonce account of one transaction share a call. */
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
    // What a reading has waited for its call is part of its time.
    const oldestMs = batch[0]?.[1].sinceMs ?? 0
    const withinMs = Math.max(1, READ_MS_MAX - (clock.monotonicMs() - oldestMs))
    const config = {
      encoding: 'base64',
      commitment: 'processed',
      dataSlice: { offset: 0, length: NONCE_ACCOUNT_BYTES },
    }
    const response = await ask('getMultipleAccounts', [batch.map(([address]) => address), config], withinMs)
    calls -= 1
    const value = (response as { value?: unknown } | null | undefined)?.value
    const values: unknown[] = Array.isArray(value) && value.length === batch.length ? value : []
    for (const [at, [address, { result }]] of batch.entries()) {
      reading.delete(address)
      result.resolve(accountOf(values[at]))
    }
  }

  return (address) => {
    const running = reading.get(address)
    if (running !== undefined) return running
    if (waiting.size >= WAITING_MAX) return Promise.resolve(undefined)
    const result = Promise.withResolvers<Account | undefined>()
    waiting.set(address, { sinceMs: clock.monotonicMs(), result })
    reading.set(address, result.promise)
    schedule()
    return result.promise
  }
}

/** Undefined for what is no account and no null: a node that responds so is treated as one that does not respond. */
function accountOf(value: unknown): Account | undefined {
  if (value === null) return null
  const { lamports, owner, data } = (value ?? {}) as { lamports?: unknown; owner?: unknown; data?: unknown }
  if (typeof lamports !== 'number' || !Number.isInteger(lamports) || lamports < 0 || typeof owner !== 'string')
    return undefined
  const text: unknown = Array.isArray(data) ? data[0] : undefined
  return typeof text === 'string' ? { lamports: BigInt(lamports), owner, data: Buffer.from(text, 'base64') } : undefined
}
