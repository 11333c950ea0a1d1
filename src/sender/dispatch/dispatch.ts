import type { Clock } from '../../core/clock.ts'
import { TokenBucket } from '../../core/token-bucket.ts'
import type { AttemptReport, Job, Receipt } from '../receipts/receipt.ts'
import { isSettled } from '../receipts/receipt.ts'
import type { Receipts } from '../receipts/receipts.ts'

/** A way out of the house. Each has bounds of its own and says `busy` at them. */
export type Path = {
  readonly name: string
  /** Whether a transaction given to it now has a chance. */
  readonly isOpen: boolean
  /** Whether half of its capacity is free. The other half is kept for new transactions: without this it gets no re-sends. */
  readonly hasSpare: boolean
  /** Sends once; `report` is called once for each target tried. */
  send(job: Job, report: (attempt: Omit<AttemptReport, 'path'>) => void): void
}

export type DispatchOptions = {
  readonly resendMs: number
  readonly endMs: number
  readonly resendsPerSecond: number
}

export type DispatchDeps = {
  readonly paths: readonly Path[]
  readonly receipts: Receipts
  readonly clock: Clock
  onAttempt(report: AttemptReport, receipt: Receipt): void
}

export type Dispatch = Disposable & {
  readonly isOpen: boolean
  /** Sends on every path at once, and again until the receipt is settled. */
  start(receipt: Receipt): void
}

const TICK_MS = 50
/** Re-sends that the rate allows in this time may come at once: few enough that a new transaction hardly waits for them. */
const RESEND_BURST_MS = 2 * TICK_MS

export function createDispatch(
  options: DispatchOptions,
  { paths, receipts, clock, onAttempt }: DispatchDeps,
): Dispatch {
  /** Every receipt waits equally long, so that the order of entry is the order of time. */
  const waiting = new Set<{ readonly receipt: Receipt; readonly dueMs: number }>()
  const perSecond = options.resendsPerSecond
  const resends = new TokenBucket(
    { capacity: Math.max(1, (perSecond * RESEND_BURST_MS) / 1000), perSecond },
    clock.monotonicMs(),
  )

  function send(receipt: Receipt, isAgain: boolean): void {
    const { job } = receipt
    if (job === undefined) return
    for (const path of paths) {
      if (!path.isOpen || (isAgain && !path.hasSpare)) continue
      path.send(job, (attempt) => {
        const report = { ...attempt, path: path.name }
        receipts.noteAttempt(receipt, report)
        onAttempt(report, receipt)
      })
    }
    waiting.add({ receipt, dueMs: clock.monotonicMs() + options.resendMs })
  }

  const timer = clock.setRepeating(TICK_MS, () => {
    const nowMs = clock.monotonicMs()
    for (const entry of waiting) {
      if (entry.dueMs > nowMs) return
      const { receipt } = entry
      const isOver = nowMs - receipt.acceptedAtMs >= options.endMs
      // Those over the rate stay where they are, at the head; the rest are looked through, so that what is settled or over goes in time.
      if (!isSettled(receipt) && !isOver && !resends.take(1, nowMs)) continue
      waiting.delete(entry)
      if (!isSettled(receipt)) {
        if (!isOver) {
          send(receipt, true)
          continue
        }
        receipts.finish(receipt, 'ended')
      }
      // A landed one is kept at hand until its block is safe: it may have to be sent again.
      const mayReturn = !isOver && receipt.state === 'landed' && receipts.watched.has(receipt)
      if (mayReturn) waiting.add({ receipt, dueMs: nowMs + options.resendMs })
      else receipt.job = undefined
    }
  })
  timer.unref?.()

  return {
    get isOpen() {
      return paths.some(({ isOpen }) => isOpen)
    },
    start: (receipt) => send(receipt, false),
    [Symbol.dispose]() {
      timer.cancel()
      waiting.clear()
    },
  }
}

/** sendTransaction as every node and relay takes it: no preflight, since the checks are made here; no retries, since they are ours. */
export function sendBody(base64: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["${base64}",{"encoding":"base64","skipPreflight":true,"maxRetries":0}]}`
}
