import type { Clock } from '../../core/clock.ts'
import { createCounts } from './counts.ts'
import type { Receipt } from './receipt.ts'

/** A wait that ends when the receipt is settled, the time has passed or it is cancelled; or the limit that was reached. */
export type Wait =
  | { readonly ended: Promise<void>; cancel(): void }
  | { readonly limit: 'waitersMax' | 'waitersPerAddressMax' }

export type WaitersOptions = { readonly waitersMax: number; readonly waitersPerAddressMax: number }

/** The waits for receipts to be settled. */
export function createWaiters(options: WaitersOptions, clock: Clock) {
  const waiters = new Map<Receipt, Set<() => void>>()
  const waitingByAddress = createCounts()
  let waiting = 0

  function wake(receipt: Receipt): void {
    for (const end of [...(waiters.get(receipt) ?? [])]) end()
  }

  return {
    wait(receipt: Receipt, waitMs: number, address: string): Wait {
      if (waitingByAddress.of(address) >= options.waitersPerAddressMax) return { limit: 'waitersPerAddressMax' }
      if (waiting >= options.waitersMax) return { limit: 'waitersMax' }
      waiting += 1
      waitingByAddress.add(address, 1)
      const { promise, resolve } = Promise.withResolvers<void>()
      const ofReceipt = waiters.get(receipt) ?? new Set()
      waiters.set(receipt, ofReceipt)
      const end = () => {
        if (!ofReceipt.delete(end)) return
        if (ofReceipt.size === 0) waiters.delete(receipt)
        waiting -= 1
        waitingByAddress.add(address, -1)
        timeout.cancel()
        resolve()
      }
      ofReceipt.add(end)
      const timeout = clock.setTimer(waitMs, end)
      timeout.unref?.()
      return { ended: promise, cancel: end }
    },
    /** Ends the waits for this receipt. */
    wake,
    wakeAll(): void {
      for (const receipt of [...waiters.keys()]) wake(receipt)
    },
  }
}
