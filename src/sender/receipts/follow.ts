import type { Timer } from '../../core/clock.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import { createExpiry, type Expiry, type ExpiryDeps } from './expiry.ts'
import { isSameLanding, type Landed, type Receipt } from './receipt.ts'
import type { Receipts } from './receipts.ts'

export type FollowDeps = ExpiryDeps & {
  readonly receipts: Receipts
  readonly ws: Pick<Upstream['ws'], 'subscribe'>
  /** Called before a settled state is replaced: a fork dropped the block of a landed transaction, or one that had expired or ended has landed. */
  onReplaced(receipt: Receipt): void
}

/** Signatures that a node accepts in one getSignatureStatuses call. */
const BATCH = 256
/** Concurrent calls. */
const PARALLEL = 4
const CALL_MS = 3000
/** How long a response is processed before other work runs: hundreds of transactions may land in one block, and new ones must not wait for all of them. */
const SLICE_MS = 0.5
/** The statuses are polled with each slot notification, but not more often than this, */
const POLL_MS_MIN = 150
/** and at least this often, when the slot subscription is lost. */
const POLL_MS_MAX = 1000
const RESUBSCRIBE_MS = 1000
/**
 * A landed transaction is reverted when a node does not report it although the node is this many slots past its block. One that has expired is looked up
 * until a node is this many slots past its expiry: the node that was asked before may have been on a fork.
 */
const FORK_SLOTS = 32
/** No node that is further past a block has to report its transactions: Agave's status cache has 300 slots. */
const STATUS_SLOTS = 150
/** Those that have expired or ended are polled so often, */
const LATE_MS = 2000
/** and only the newest of them: those that never land must not delay the others. */
const LATE_MAX = 4096

type Batch = { readonly receipts: readonly Receipt[]; readonly expiredBefore: ReadonlyMap<string, Expiry> }

/** Follows sent transactions on the chain: landed, expired, reverted by a fork, or landed after they had expired or ended. */
export function startFollow(deps: FollowDeps): Disposable {
  const { receipts, callNode, ws, clock, onReplaced } = deps
  let isClosed = false
  /** Those that wait for a call or its response. */
  const polling = new Set<Receipt>()
  /** Batches that wait for a call. */
  const work: Batch[] = []
  let workers = 0
  let isDue = false
  let polledAtMs = Number.NEGATIVE_INFINITY
  let latePolledAtMs = Number.NEGATIVE_INFINITY
  /** The slot of the node that found it expired. */
  const expiredSlots = new WeakMap<Receipt, number>()
  let subscription: ReturnType<typeof ws.subscribe>
  const expiry = createExpiry(deps)

  function subscribe(): void {
    subscription ??= ws.subscribe(
      { method: 'slotSubscribe', unsubscribe: 'slotUnsubscribe', params: '[]' },
      {
        onReady() {},
        onRefused: () => {
          subscription = undefined
        },
        onNotification: poll,
        onLost: () => {
          subscription = undefined
        },
      },
    )
  }

  function poll(): void {
    if (isClosed || receipts.watched.size === 0) return
    isDue = work.length > 0 || clock.monotonicMs() - polledAtMs < POLL_MS_MIN
    if (isDue) return
    polledAtMs = clock.monotonicMs()
    // Taken before the status calls: a transaction that is in no block after its blockhash has expired never will be.
    const expiredBefore = expiry.expired()
    const due = dueReceipts().filter((receipt) => !polling.has(receipt))
    for (const receipt of due) polling.add(receipt)
    for (let at = 0; at < due.length; at += BATCH) work.push({ receipts: due.slice(at, at + BATCH), expiredBefore })
    while (workers < PARALLEL && work.length > 0) void pollBatches()
    expiry.poll()
  }

  /** A slow response holds up only its own batch. */
  async function pollBatches(): Promise<void> {
    workers += 1
    try {
      for (let batch = work.shift(); batch !== undefined; batch = work.shift()) {
        const { receipts: polled } = batch
        await pollStatuses(batch).finally(() => {
          for (const receipt of polled) polling.delete(receipt)
        })
      }
    } finally {
      workers -= 1
    }
  }

  function dueReceipts(): Receipt[] {
    const late: Receipt[] = []
    const others: Receipt[] = []
    for (const receipt of receipts.watched) (isLate(receipt) ? late : others).push(receipt)
    for (const receipt of late.splice(0, Math.max(0, late.length - LATE_MAX))) receipts.stopFollowing(receipt)
    if (polledAtMs - latePolledAtMs < LATE_MS) return others
    latePolledAtMs = polledAtMs
    return [...others, ...late]
  }

  async function pollStatuses({ receipts: batch, expiredBefore }: Batch): Promise<void> {
    const response = await callNode('getSignatureStatuses', [batch.map(({ signature }) => signature)], CALL_MS)
    const { context, value } = (response ?? {}) as { context?: { slot?: unknown }; value?: unknown }
    if (!Array.isArray(value) || value.length !== batch.length || typeof context?.slot !== 'number') return
    const slices = createTimeSlices(() => clock.monotonicMs(), { sliceMs: SLICE_MS })
    for (const [at, receipt] of batch.entries()) {
      if (slices.isSpent()) await slices.yield()
      if (isClosed) return
      if (!receipts.watched.has(receipt)) continue
      const landed = readStatus(value[at])
      if (landed !== undefined) land(receipt, landed)
      else if (receipt.landed !== undefined) revertIfDropped(receipt, context.slot)
      else if (receipt.state === 'expired') {
        if (context.slot - (expiredSlots.get(receipt) ?? 0) > FORK_SLOTS) receipts.stopFollowing(receipt)
      } else if (receipt.state !== 'unknown') {
        const found = expiredBefore.get(receipt.blockhash ?? '')
        // A node that is further behind may not have the transaction's block yet.
        if (found !== undefined && context.slot >= found.slot) expire(receipt, found)
      }
    }
  }

  function land(receipt: Receipt, landed: Omit<Landed, 'unixMs'>): void {
    const isReplaced = receipt.landed === undefined ? isLate(receipt) : !isSameLanding(receipt.landed, landed)
    if (isReplaced) onReplaced(receipt)
    receipts.land(receipt, landed)
  }

  /** The node at this slot does not report the landed transaction. */
  function revertIfDropped(receipt: Receipt, slot: number): void {
    const slotsPast = slot - (receipt.landed?.slot ?? 0)
    if (slotsPast <= FORK_SLOTS) return
    if (slotsPast > STATUS_SLOTS) return receipts.stopFollowing(receipt)
    onReplaced(receipt)
    receipts.revert(receipt)
  }

  function expire(receipt: Receipt, { height, slot }: Expiry): void {
    if (isLate(receipt)) onReplaced(receipt)
    expiredSlots.set(receipt, slot)
    receipts.settle(receipt, 'expired', height)
  }

  const timers: Timer[] = [
    clock.setRepeating(RESUBSCRIBE_MS, subscribe),
    clock.setRepeating(POLL_MS_MIN, () => {
      if (isDue || clock.monotonicMs() - polledAtMs >= POLL_MS_MAX) poll()
    }),
  ]
  for (const timer of timers) timer.unref?.()
  subscribe()

  return {
    [Symbol.dispose]() {
      isClosed = true
      for (const timer of timers) timer.cancel()
      subscription?.close()
    },
  }
}

/** Whether it is no longer sent but may land yet. */
function isLate({ state }: Receipt): boolean {
  return state === 'expired' || state === 'ended'
}

function readStatus(status: unknown): Omit<Landed, 'unixMs'> | undefined {
  const { slot, err, confirmationStatus } = (status ?? {}) as {
    slot?: unknown
    err?: unknown
    confirmationStatus?: unknown
  }
  if (typeof slot !== 'number') return undefined
  const isKnown = confirmationStatus === 'confirmed' || confirmationStatus === 'finalized'
  return { slot, error: err ?? null, confirmation: isKnown ? confirmationStatus : 'processed' }
}
