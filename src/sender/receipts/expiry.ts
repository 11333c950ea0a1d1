import type { Clock } from '../../core/clock.ts'
import type { CallNode } from '../../upstreams/call-node.ts'
import type { Receipts } from './receipts.ts'

export type ExpiryDeps = {
  readonly receipts: Pick<Receipts, 'watched'>
  readonly callNode: CallNode
  readonly clock: Clock
  /** The newest slot of any node. */
  readonly bestSlot: () => number
  /** The length of a slot. */
  readonly slotMs: () => number
}

/** Where it was found that a blockhash has expired. */
export type Expiry = { readonly height: number; readonly slot: number }

/** A blockhash stays valid for a while after its transaction was accepted, so expiry is not checked earlier. */
const FIRST_MS = 5000
const EVERY_MS = 2000
const BLOCKHASHES_MAX = 256
/** Concurrent calls. */
const PARALLEL = 4
const CALL_MS = 3000

/**
 * Finds which blockhashes of sent transactions have expired. A round takes a call for each blockhash, so it runs beside the polling of statuses:
 * transactions that never land do not delay the receipts of others.
 */
export function createExpiry({ receipts, callNode, clock, bestSlot, slotMs }: ExpiryDeps) {
  let isChecking = false
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let expired: ReadonlyMap<string, Expiry> = new Map()

  async function check(): Promise<void> {
    const slots = new Map<string, number>()
    const work = blockhashes().values()
    const worker = async () => {
      for (const blockhash of work) {
        const slot = await expiredAt(blockhash)
        if (slot !== undefined) slots.set(blockhash, slot)
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, worker))
    const height =
      slots.size === 0 ? undefined : await callNode('getBlockHeight', [{ commitment: 'confirmed' }], CALL_MS)
    const found = new Map<string, Expiry>()
    if (typeof height === 'number') for (const [blockhash, slot] of slots) found.set(blockhash, { height, slot })
    expired = found
  }

  function blockhashes(): Set<string> {
    const nowMs = clock.monotonicMs()
    const found = new Set<string>()
    for (const { blockhash, acceptedMonotonicMs, landed, state } of receipts.watched) {
      if (found.size >= BLOCKHASHES_MAX) break
      if (blockhash === undefined || landed !== undefined || state === 'unknown' || state === 'expired') continue
      if (nowMs - acceptedMonotonicMs >= FIRST_MS) found.add(blockhash)
    }
    return found
  }

  /** The slot at which a node finds the blockhash expired. */
  async function expiredAt(blockhash: string): Promise<number | undefined> {
    const response = await callNode('isBlockhashValid', [blockhash, { commitment: 'confirmed' }], CALL_MS)
    const { context, value } = (response ?? {}) as { context?: { slot?: unknown }; value?: unknown }
    const slot = context?.slot
    return value === false && typeof slot === 'number' && hasSeenAccepted(slot) ? slot : undefined
  }

  /** Whether a node at this slot knows the blockhashes of transactions that were accepted FIRST_MS ago: to an earlier one they are new. */
  function hasSeenAccepted(slot: number): boolean {
    return (bestSlot() - slot) * slotMs() <= FIRST_MS
  }

  return {
    /** As the last round found them. */
    expired: () => expired,
    /** Begins a round, unless one is running or the last one has just begun. */
    poll(): void {
      if (isChecking || clock.monotonicMs() - checkedAtMs < EVERY_MS) return
      isChecking = true
      checkedAtMs = clock.monotonicMs()
      void check().finally(() => {
        isChecking = false
      })
    },
  }
}
