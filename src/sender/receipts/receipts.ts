import type { Clock } from '../../core/clock.ts'
import { createCounts } from './counts.ts'
import { createKnownSignatures, DEDUP_MS } from './known-signatures.ts'
import {
  type Attempt,
  type AttemptReport,
  isSameLanding,
  isSettled,
  type KnownTransaction,
  type Landed,
  type Receipt,
} from './receipt.ts'
import { createWaiters, type Wait, type WaitersOptions } from './waiters.ts'

export type ReceiptsOptions = WaitersOptions & {
  /** Receipts of settled transactions; those that are pending have a limit of their own. */
  readonly receiptsMax: number
  readonly knownSignaturesMax: number
  readonly keepMs: number
}

export type ReceiptsDeps = {
  readonly clock: Clock
  /** The receipt is settled. It may settle again: a fork may revert a landed one, and one that has expired or ended may land. */
  onSettled(receipt: Receipt): void
  /** Called once, when no fork can drop the block of a landed receipt any more or the receipt is no longer followed. */
  onConfirmed?(receipt: Receipt): void
  /** A landed receipt is no longer landed. */
  onReverted?(receipt: Receipt): void
}

/** The receipts of recently accepted transactions. */
export type Receipts = Disposable & {
  /** By `signatureKey`. */
  get(key: string): Receipt | undefined
  /** By `signatureKey`: the receipt, or what is left of it for DEDUP_MS after it was removed to make room. */
  findKnown(key: string): KnownTransaction | undefined
  /** No further signature can be remembered: one more transaction would be sent twice if it came twice. */
  readonly isFull: boolean
  add(receipt: Receipt): void
  /** Receipts whose status is polled on the chain. */
  readonly watched: ReadonlySet<Receipt>
  /** Number of receipts that are `accepted` or `sent`. */
  readonly pending: number
  pendingOfAddress(address: string): number
  pendingOfPayer(feePayer: string): number
  readonly size: number
  /** Number of signatures that are known without a receipt. */
  readonly knownSignatures: number
  recordAttempt(receipt: Receipt, report: AttemptReport): void
  /** Repeated with a higher confirmation, and with another slot or error when the block it was seen in was replaced by another one. */
  land(receipt: Receipt, landed: Omit<Landed, 'unixMs'>): void
  /** Stops polling the chain for this receipt; its state stays. */
  stopFollowing(receipt: Receipt): void
  /** Reverts `land`: the block is no longer part of the chain. */
  revert(receipt: Receipt): void
  /** The receipt stays watched: on another fork it may have landed, and one that ended may land yet. */
  settle(receipt: Receipt, state: 'expired' | 'ended', height?: number): void
  wait(receipt: Receipt, waitMs: number, address: string): Wait
  /** Ends all waits, at shutdown. */
  wakeAll(): void
}

/** Attempts listed in a receipt, one per path and target; repeated attempts are counted in the existing entry. */
const ATTEMPTS_MAX = 32
const SWEEP_MS = 1000

export function createReceipts(options: ReceiptsOptions, deps: ReceiptsDeps): Receipts {
  const { clock, onSettled } = deps
  const all = new Map<string, Receipt>()
  /** Those that are neither pending nor unknown, in the order in which they were settled. */
  const settled = new Set<Receipt>()
  const known = createKnownSignatures()
  const watched = new Set<Receipt>()
  const waiters = createWaiters(options, clock)
  let pending = 0
  const pendingOfAddress = createCounts()
  const pendingOfPayer = createCounts()

  function countPending({ address, feePayer }: Receipt, by: 1 | -1): void {
    pending += by
    if (address !== undefined) pendingOfAddress.add(address, by)
    if (feePayer !== undefined) pendingOfPayer.add(feePayer, by)
  }

  function isPending(receipt: Receipt): boolean {
    return !isSettled(receipt)
  }

  function setState(receipt: Receipt, state: Receipt['state']): void {
    const wasPending = isPending(receipt)
    receipt.state = state
    // One that was replaced while it was pending is not counted any more.
    const isCounted = all.get(receipt.key) === receipt
    if (isCounted && wasPending !== isPending(receipt)) countPending(receipt, wasPending ? -1 : 1)
    settled.delete(receipt)
    if (isPending(receipt)) return
    receipt.settledMonotonicMs = clock.monotonicMs()
    if (isCounted) addSettled(receipt)
    onSettled(receipt)
    waiters.wake(receipt)
  }

  function addSettled(receipt: Receipt): void {
    if (receipt.state === 'unknown') return
    settled.add(receipt)
    if (settled.size > options.receiptsMax) reduceOldest()
  }

  /** Removes the receipt that was settled first, and remembers its signature. */
  function reduceOldest(): void {
    const oldest = settled.values().next().value as Receipt
    const { settledMonotonicMs: settledMs = 0 } = oldest
    stopFollowing(oldest)
    remove(oldest)
    if (clock.monotonicMs() - settledMs < DEDUP_MS) known.add(oldest, settledMs)
  }

  function stopFollowing(receipt: Receipt): void {
    if (watched.delete(receipt) && receipt.landed !== undefined) deps.onConfirmed?.(receipt)
  }

  function remove(receipt: Receipt): void {
    all.delete(receipt.key)
    settled.delete(receipt)
    watched.delete(receipt)
    if (isPending(receipt)) countPending(receipt, -1)
    waiters.wake(receipt)
  }

  /** Removes what is older than `keepMs`; pending receipts stay. */
  function sweep(): void {
    const nowMs = clock.monotonicMs()
    const isOld = (receipt: Receipt) =>
      !isPending(receipt) && (receipt.settledMonotonicMs ?? 0) <= nowMs - options.keepMs
    for (const receipt of settled) {
      if (!isOld(receipt)) break
      stopFollowing(receipt)
      remove(receipt)
    }
    // Unknown ones are not among the settled.
    for (const receipt of watched) if (isOld(receipt)) remove(receipt)
    known.removeOld(nowMs)
  }

  const timer = clock.setRepeating(SWEEP_MS, sweep)
  timer.unref?.()

  return {
    get: (key) => all.get(key),
    findKnown: (key) => all.get(key) ?? known.get(key),
    get isFull() {
      return known.size >= options.knownSignaturesMax
    },
    add(receipt) {
      const before = all.get(receipt.key)
      if (before !== undefined) remove(before)
      known.delete(receipt.key)
      all.set(receipt.key, receipt)
      if (isPending(receipt) || receipt.state === 'unknown' || receipt.landed?.confirmation === 'processed')
        watched.add(receipt)
      if (isPending(receipt)) countPending(receipt, 1)
      else addSettled(receipt)
    },
    watched,
    get pending() {
      return pending
    },
    pendingOfAddress: (address) => pendingOfAddress.of(address),
    pendingOfPayer: (feePayer) => pendingOfPayer.of(feePayer),
    get size() {
      return all.size
    },
    get knownSignatures() {
      return known.size
    },
    recordAttempt(receipt, report) {
      const nowMs = clock.nowMs()
      const same = receipt.attempts.find(({ path, to }) => path === report.path && to === report.to)
      if (same !== undefined) {
        // A path that took the transaction once keeps `taken`, whatever it responds to a re-send.
        const { response, message } = same.response === 'taken' ? same : report
        Object.assign(same, { response, message, lastUnixMs: nowMs, times: same.times + 1 } satisfies Partial<Attempt>)
      } else if (receipt.attempts.length < ATTEMPTS_MAX) {
        receipt.attempts.push({ ...report, firstUnixMs: nowMs, lastUnixMs: nowMs, times: 1 })
      } else receipt.attemptsLeftOut += 1
      if (report.response === 'taken' && receipt.state === 'accepted') receipt.state = 'sent'
    },
    land(receipt, landed) {
      if (receipt.landed !== undefined && isSameLanding(receipt.landed, landed)) {
        receipt.landed = { ...receipt.landed, error: landed.error, confirmation: landed.confirmation }
      } else {
        receipt.landed = { ...landed, unixMs: clock.nowMs() }
        receipt.expiredHeight = undefined
        setState(receipt, 'landed')
      }
      // Only a block at `processed` can be dropped by a fork.
      if (landed.confirmation !== 'processed') stopFollowing(receipt)
    },
    stopFollowing,
    revert(receipt) {
      deps.onReverted?.(receipt)
      receipt.landed = undefined
      receipt.settledMonotonicMs = undefined
      setState(receipt, receipt.job === undefined ? 'unknown' : 'sent')
    },
    settle(receipt, state, height) {
      receipt.expiredHeight = height
      setState(receipt, state)
    },
    wait: waiters.wait,
    wakeAll: waiters.wakeAll,
    [Symbol.dispose]() {
      timer.cancel()
      waiters.wakeAll()
    },
  }
}
