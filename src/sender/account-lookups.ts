import type { Clock } from '../core/clock.ts'
import { NONCE_ACCOUNT_BYTES } from '../solana/durable-nonce.ts'
import type { AskNode } from './ask-node.ts'

/** An account as a node reports it, with no more of its data than a nonce account has; null where there is none. */
export type Account = { readonly lamports: bigint; readonly owner: string; readonly data: Uint8Array } | null

/** What was read last, and when a read was last tried; `account` is undefined where no read has succeeded. */
export type Reading = { readonly account: Account | undefined; readonly readMs: number; readonly triedMs: number }

/** Reads accounts from a node: many in one call, each at most once at a time, a bounded number of calls. */
export type AccountLookups = {
  /** The last reading, if it is still kept. Counts as a use of the address. */
  known(address: string): Reading | undefined
  /** Reads anew. Undefined when no node responds in time, or when too many addresses wait. */
  read(address: string): Promise<Account | undefined>
}

/** A transaction waits no longer than this for a reading. */
const READ_MS_MAX = 300
/** A node accepts so many addresses in one call. */
const BATCH = 100
const CALLS_MAX = 4
const WAITING_MAX = 1000
/** Readings kept, of accounts that exist and of those that do not: addresses made up at no cost displace only each other. */
const KNOWN_MAX = 16_384

type Waiting = { readonly sinceMs: number; readonly result: PromiseWithResolvers<Account | undefined> }

export function createAccountLookups({ ask, clock }: { readonly ask: AskNode; readonly clock: Clock }): AccountLookups {
  /** In the order of last use. */
  const existing = new Map<string, Reading>()
  const missing = new Map<string, Reading>()
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
      const account = accountOf(values[at])
      keep(address, account)
      reading.delete(address)
      result.resolve(account)
    }
  }

  function keep(address: string, account: Account | undefined): void {
    const nowMs = clock.monotonicMs()
    const before = existing.get(address) ?? missing.get(address)
    existing.delete(address)
    missing.delete(address)
    const latest =
      account === undefined ? { account: before?.account, readMs: before?.readMs ?? 0 } : { account, readMs: nowMs }
    const kept = latest.account ? existing : missing
    kept.set(address, { ...latest, triedMs: nowMs })
    if (kept.size > KNOWN_MAX) kept.delete(kept.keys().next().value as string)
  }

  return {
    known(address) {
      const found = existing.get(address)
      if (found === undefined) return missing.get(address)
      existing.delete(address)
      existing.set(address, found)
      return found
    },
    read(address) {
      const running = reading.get(address)
      if (running !== undefined) return running
      if (waiting.size >= WAITING_MAX) return Promise.resolve(undefined)
      const result = Promise.withResolvers<Account | undefined>()
      waiting.set(address, { sinceMs: clock.monotonicMs(), result })
      reading.set(address, result.promise)
      schedule()
      return result.promise
    },
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
