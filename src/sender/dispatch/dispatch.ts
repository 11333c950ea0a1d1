import type { Clock } from '../../core/clock.ts'
import { TokenBucket } from '../../core/token-bucket.ts'
import { type AttemptReport, isSettled, type Job, type Receipt } from '../receipts/receipt.ts'
import type { Receipts } from '../receipts/receipts.ts'

/** A path to send transactions on. Each has its own limits and reports `busy` at them. */
export type Path = {
  readonly name: string
  /** Whether it can send now. */
  readonly isOpen: boolean
  /** Whether half of its capacity is free; otherwise it gets no re-sends, to leave capacity for new transactions. */
  readonly hasSpare: boolean
  /** Sends once; calls `report` once for each target. */
  send(job: Job, report: (attempt: Omit<AttemptReport, 'path'>) => void): void
}

export type DispatchOptions = {
  /** Undefined: five slots, somewhat more than a leader has in a row. */
  readonly resendMs?: number | undefined
  readonly endMs: number
  readonly resendsPerSecond: number
}

export type DispatchDeps = {
  readonly paths: readonly Path[]
  /** The one of `paths` that leads to the leaders. */
  readonly leaders?: Path | undefined
  readonly receipts: Receipts
  readonly clock: Clock
  /** The length of a slot. */
  readonly slotMs: () => number
  onAttempt(report: AttemptReport, receipt: Receipt): void
  /** A path threw instead of reporting; called again only after it has worked in between. */
  onThrown(path: string, error: unknown): void
}

export type Dispatch = Disposable & {
  readonly isOpen: boolean
  /** The names of all paths, open or not. */
  readonly paths: readonly string[]
  /** Sends on every path at once, and again until the receipt is settled. */
  start(receipt: Receipt): void
}

const TICK_MS = 50
const RESEND_SLOTS = 5
/** The burst of re-sends is what the rate allows in this time: few enough that new transactions hardly wait for them. */
const RESEND_BURST_MS = 2 * TICK_MS

export function createDispatch(
  options: DispatchOptions,
  { paths, leaders, receipts, clock, slotMs, onAttempt, onThrown }: DispatchDeps,
): Dispatch {
  const others = paths.filter((path) => path !== leaders)
  const resendMs = () => options.resendMs ?? RESEND_SLOTS * slotMs()
  /** In the order of `dueMs`, since every receipt waits equally long, but for those of the moment in which the length of a slot changed. */
  const waiting = new Set<{ readonly receipt: Receipt; readonly dueMs: number }>()
  /** Paths that threw the last time. */
  const throwing = new Set<Path>()
  const perSecond = options.resendsPerSecond
  const resends = new TokenBucket(
    { capacity: Math.max(1, (perSecond * RESEND_BURST_MS) / 1000), perSecond },
    clock.monotonicMs(),
  )

  function send(receipt: Receipt, isResend: boolean): void {
    const { job } = receipt
    if (job === undefined) return
    const isUsed = (path: Path) => path.isOpen && (!isResend || path.hasSpare)
    const sendOn = (path: Path) => {
      const report = (attempt: Omit<AttemptReport, 'path'>) => {
        const named = { ...attempt, path: path.name }
        receipts.recordAttempt(receipt, named)
        onAttempt(named, receipt)
      }
      // An error thrown in a microtask or timer would end the thread, and with it all paths.
      try {
        path.send(job, report)
        throwing.delete(path)
      } catch (error) {
        if (!throwing.has(path)) onThrown(path.name, error)
        throwing.add(path)
        // Receipts are public, and the error may contain an address.
        report({ to: path.name, response: 'failed', message: 'failed before sending' })
      }
    }
    const sendOnOthers = () => {
      for (const path of others) if (isUsed(path)) sendOn(path)
    }
    if (leaders !== undefined && isUsed(leaders)) {
      sendOn(leaders)
      // The packets to the leaders leave in a microtask that is queued by now; HTTP requests leave at the end of the turn in any case.
      queueMicrotask(sendOnOthers)
    } else sendOnOthers()
    wait(receipt, clock.monotonicMs())
  }

  function wait(receipt: Receipt, nowMs: number): void {
    waiting.add({ receipt, dueMs: nowMs + resendMs() })
  }

  /** Handles a receipt that is due. False when it has to wait for the rate of re-sends. */
  function handleDue(receipt: Receipt, nowMs: number): boolean {
    const isOver = nowMs - receipt.acceptedMonotonicMs >= options.endMs
    if (isSettled(receipt)) {
      if (!isOver && mayRevert(receipt)) wait(receipt, nowMs)
      else receipt.job = undefined
      return true
    }
    if (isOver) {
      receipts.settle(receipt, 'ended')
      receipt.job = undefined
      return true
    }
    if (!resends.take(1, nowMs)) return false
    send(receipt, true)
    return true
  }

  /** A landed transaction keeps its job until its block is confirmed: after a fork it is sent again. */
  function mayRevert(receipt: Receipt): boolean {
    return receipt.state === 'landed' && receipts.watched.has(receipt)
  }

  const timer = clock.setRepeating(TICK_MS, () => {
    const nowMs = clock.monotonicMs()
    for (const entry of waiting) {
      if (entry.dueMs > nowMs) return
      // Receipts over the rate stay at the head; the loop continues, so that settled and ended ones are still removed in time.
      if (handleDue(entry.receipt, nowMs)) waiting.delete(entry)
    }
  })
  timer.unref?.()

  return {
    get isOpen() {
      return paths.some(({ isOpen }) => isOpen)
    },
    paths: paths.map(({ name }) => name),
    start: (receipt) => send(receipt, false),
    [Symbol.dispose]() {
      timer.cancel()
      waiting.clear()
    },
  }
}

/** The body of sendTransaction: without preflight, since the sender has checked it, and without retries, since the sender re-sends. */
export function sendBody(base64: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["${base64}",{"encoding":"base64","skipPreflight":true,"maxRetries":0}]}`
}
