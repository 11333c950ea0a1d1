import type { Clock } from '../../core/clock.ts'
import { createCounts } from './counts.ts'
import type { Attempt, AttemptReport, Landed, Receipt } from './receipt.ts'

export type ReceiptsOptions = {
  readonly receiptsMax: number
  readonly keepMs: number
  readonly waitersMax: number
  readonly waitersPerAddressMax: number
}

/** Over when the receipt is settled, the time has passed or it is given up; or the limit that is reached. */
export type Wait =
  | { readonly over: Promise<void>; giveUp(): void }
  | { readonly limit: 'waitersMax' | 'waitersPerAddressMax' }

export type ReceiptsDeps = {
  readonly clock: Clock
  /** The receipt has reached its last state; after a fork a landed one may come back and finish again. */
  onFinished(receipt: Receipt): void
}

/** What is known of every transaction accepted lately. */
export type Receipts = Disposable & {
  get(signature: string): Receipt | undefined
  add(receipt: Receipt): void
  /** Those that are still of interest to whoever watches the chain. */
  readonly watched: ReadonlySet<Receipt>
  /** Those on their way: accepted or sent. */
  readonly pending: number
  pendingOfAddress(address: string): number
  pendingOfPayer(feePayer: string): number
  readonly size: number
  noteAttempt(receipt: Receipt, report: AttemptReport): void
  land(receipt: Receipt, landed: Omit<Landed, 'atMs'>): void
  /** The block it was seen in is not part of the chain any more. */
  unland(receipt: Receipt): void
  finish(receipt: Receipt, state: 'expired' | 'ended', height?: number): void
  wait(receipt: Receipt, waitMs: number, address: string): Wait
  /** Ends all waiting at once, for a service that is going down. */
  wakeAll(): void
}

/** Attempts told one by one; more of the same path and target are counted in the entry that is there. */
const ATTEMPTS_MAX = 32
const SWEEP_MS = 1000

export function createReceipts(options: ReceiptsOptions, { clock, onFinished }: ReceiptsDeps): Receipts {
  /** In order of acceptance. */
  const all = new Map<string, Receipt>()
  const watched = new Set<Receipt>()
  const waiters = new Map<Receipt, Set<() => void>>()
  const waitingOf = createCounts()
  let waiting = 0
  let pending = 0
  const pendingOfAddress = createCounts()
  const pendingOfPayer = createCounts()

  function countPending({ address, feePayer }: Receipt, by: 1 | -1): void {
    pending += by
    if (address !== undefined) pendingOfAddress.add(address, by)
    if (feePayer !== undefined) pendingOfPayer.add(feePayer, by)
  }

  function isPending({ state }: Receipt): boolean {
    return state === 'accepted' || state === 'sent'
  }

  function setState(receipt: Receipt, state: Receipt['state']): void {
    const wasPending = isPending(receipt)
    receipt.state = state
    if (wasPending !== isPending(receipt)) countPending(receipt, wasPending ? -1 : 1)
    if (isPending(receipt)) return
    receipt.finishedAtMs = clock.monotonicMs()
    onFinished(receipt)
    for (const wake of waiters.get(receipt) ?? []) wake()
  }

  function forget(receipt: Receipt): void {
    all.delete(receipt.signature)
    watched.delete(receipt)
    if (isPending(receipt)) countPending(receipt, -1)
    for (const wake of waiters.get(receipt) ?? []) wake()
  }

  /** The oldest go first; one still on its way stays as long as there is room. */
  function sweep(): void {
    const keptFromMs = clock.monotonicMs() - options.keepMs
    for (const receipt of all.values()) {
      const isOld = !isPending(receipt) && (receipt.finishedAtMs ?? 0) <= keptFromMs
      if (!isOld && all.size <= options.receiptsMax) {
        if (isPending(receipt)) continue
        return
      }
      forget(receipt)
    }
  }
  function wakeAll(): void {
    for (const ofReceipt of [...waiters.values()]) for (const wake of [...ofReceipt]) wake()
  }

  const timer = clock.setRepeating(SWEEP_MS, sweep)
  timer.unref?.()

  return {
    get: (signature) => all.get(signature),
    add(receipt) {
      const before = all.get(receipt.signature)
      if (before !== undefined) forget(before)
      all.set(receipt.signature, receipt)
      if (isPending(receipt)) countPending(receipt, 1)
      if (isPending(receipt) || receipt.state === 'unknown') watched.add(receipt)
      if (all.size > options.receiptsMax) sweep()
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
    noteAttempt(receipt, report) {
      const nowMs = clock.nowMs()
      const same = receipt.attempts.find(({ path, to }) => path === report.path && to === report.to)
      if (same !== undefined) {
        // A path that took it once has it, whatever it says when it is asked again.
        const { response, says } = same.response === 'taken' ? same : report
        Object.assign(same, { response, says, lastMs: nowMs, times: same.times + 1 } satisfies Partial<Attempt>)
      } else if (receipt.attempts.length < ATTEMPTS_MAX) {
        receipt.attempts.push({ ...report, firstMs: nowMs, lastMs: nowMs, times: 1 })
      } else receipt.attemptsLeftOut += 1
      if (report.response === 'taken' && receipt.state === 'accepted') receipt.state = 'sent'
    },
    land(receipt, landed) {
      if (receipt.landed?.slot === landed.slot) {
        receipt.landed = { ...receipt.landed, confirmation: landed.confirmation }
      } else {
        receipt.landed = { ...landed, atMs: clock.nowMs() }
        setState(receipt, 'landed')
      }
      // Nothing but a processed block is ever taken back.
      if (landed.confirmation !== 'processed') watched.delete(receipt)
    },
    unland(receipt) {
      receipt.landed = undefined
      receipt.finishedAtMs = undefined
      setState(receipt, receipt.job === undefined ? 'unknown' : 'sent')
    },
    finish(receipt, state, height) {
      receipt.expiredHeight = height
      watched.delete(receipt)
      setState(receipt, state)
    },
    wait(receipt, waitMs, address) {
      if (waitingOf.of(address) >= options.waitersPerAddressMax) return { limit: 'waitersPerAddressMax' }
      if (waiting >= options.waitersMax) return { limit: 'waitersMax' }
      waiting += 1
      waitingOf.add(address, 1)
      const { promise, resolve } = Promise.withResolvers<void>()
      const ofReceipt = waiters.get(receipt) ?? new Set()
      waiters.set(receipt, ofReceipt)
      const wake = () => {
        if (!ofReceipt.delete(wake)) return
        if (ofReceipt.size === 0) waiters.delete(receipt)
        waiting -= 1
        waitingOf.add(address, -1)
        timeout.cancel()
        resolve()
      }
      ofReceipt.add(wake)
      const timeout = clock.setTimer(waitMs, wake)
      timeout.unref?.()
      return { over: promise, giveUp: wake }
    },
    wakeAll,
    [Symbol.dispose]() {
      timer.cancel()
      wakeAll()
    },
  }
}
