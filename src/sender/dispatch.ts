import type { Clock } from '../core/clock.ts'
import type { AttemptReport, Job, Receipt } from './receipt.ts'
import { isSettled } from './receipt.ts'
import type { Receipts } from './receipts.ts'

/** A way out of the house. Each has bounds of its own and says `busy` at them. */
export type Path = {
  readonly name: string
  /** Whether a transaction given to it now has a chance. */
  readonly isOpen: boolean
  /** Sends once; `report` is called once for each target tried. */
  send(job: Job, report: (attempt: Omit<AttemptReport, 'path'>) => void): void
}

export type DispatchOptions = { readonly resendMs: number; readonly endMs: number }

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
/** Sent again in one tick at most, so that new transactions are not held up by old ones. */
const RESENDS_PER_TICK = 500

export function createDispatch(
  options: DispatchOptions,
  { paths, receipts, clock, onAttempt }: DispatchDeps,
): Dispatch {
  /** Every receipt waits equally long, so that the order of entry is the order of time. */
  const waiting = new Set<{ readonly receipt: Receipt; readonly dueMs: number }>()

  function send(receipt: Receipt): void {
    const { job } = receipt
    if (job === undefined) return
    for (const path of paths) {
      if (!path.isOpen) continue
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
    let left = RESENDS_PER_TICK
    for (const entry of waiting) {
      if (entry.dueMs > nowMs || left-- === 0) return
      waiting.delete(entry)
      const { receipt } = entry
      // A landed one is kept at hand until its block is safe: it may have to be sent again.
      if (isSettled(receipt) && !(receipt.state === 'landed' && receipts.watched.has(receipt))) receipt.job = undefined
      else if (nowMs - receipt.acceptedAtMs < options.endMs) {
        if (isSettled(receipt)) waiting.add({ receipt, dueMs: nowMs + options.resendMs })
        else send(receipt)
      } else {
        if (!isSettled(receipt)) receipts.finish(receipt, 'ended')
        receipt.job = undefined
      }
    }
  })
  timer.unref?.()

  return {
    get isOpen() {
      return paths.some(({ isOpen }) => isOpen)
    },
    start: send,
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
