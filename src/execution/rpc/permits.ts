import type { WorkOwner } from '../api/work-budget.ts'
import { LimitFailure } from './failure.ts'

export type RpcPermitsOptions = {
  /** Concurrent requests of one owner, from the request head to the last byte of the response. */
  readonly perClientMax: number
  readonly inAllMax: number
  /** Unread response bytes of one owner, and of all owners. */
  readonly unreadPerClientMax: number
  readonly unreadInAllMax: number
  /** A response of up to so many bytes is never refused; the number of requests limits these. */
  readonly smallBytesMax: number
}

export type RpcPermit = Disposable & {
  /**
   * Counts the bytes of a response until the permit is released; throws a LimitFailure over the limit of its owner. Over the limit of all
   * owners other responses are closed, by their `close`.
   */
  holdResponse(bytes: number, close: () => void): void
}

export type RpcPermits = {
  /** Throws a LimitFailure when too many requests are open. */
  acquire(owner: WorkOwner): RpcPermit
  readonly open: number
  readonly unreadBytes: number
}

const RETRY_MS = 1000

type Use = { requests: number; unreadBytes: number }

type HeldResponse = { readonly use: Use; readonly bytes: number; readonly close: () => void }

/** Limits the memory of open requests, per owner and in total. */
export function createRpcPermits(options: RpcPermitsOptions): RpcPermits {
  const { perClientMax, inAllMax, unreadPerClientMax, unreadInAllMax, smallBytesMax } = options
  const uses = new Map<WorkOwner, Use>()
  const all: Use = { requests: 0, unreadBytes: 0 }
  /** The longest held first. */
  const responses = new Set<HeldResponse>()

  function acquire(owner: WorkOwner): RpcPermit {
    const use = uses.get(owner) ?? { requests: 0, unreadBytes: 0 }
    if (use.requests >= perClientMax)
      throw refusal('requestsPerClient', perClientMax, 'requests of one client at a time')
    if (all.requests >= inAllMax) throw refusal('requestsInAll', inAllMax, 'requests at a time')
    uses.set(owner, use)
    for (const one of [use, all]) one.requests += 1
    let held: HeldResponse | undefined
    let isOpen = true
    return {
      holdResponse(bytes, close) {
        if (bytes > smallBytesMax) {
          if (use.unreadBytes + bytes > unreadPerClientMax)
            throw refusal('unreadBytes', unreadPerClientMax, 'bytes of responses that one client has not read')
          while (responses.size > 0 && all.unreadBytes + bytes > unreadInAllMax) closeLargestUse()
        }
        held = { use, bytes, close }
        responses.add(held)
        for (const one of [use, all]) one.unreadBytes += bytes
      },
      [Symbol.dispose]() {
        if (!isOpen) return
        isOpen = false
        if (held !== undefined) release(held)
        for (const one of [use, all]) one.requests -= 1
        if (use.requests === 0) uses.delete(owner)
      },
    }
  }

  function release(response: HeldResponse): void {
    if (!responses.delete(response)) return
    for (const one of [response.use, all]) one.unreadBytes -= response.bytes
  }

  /** Closes the longest-held response of the owner with the most unread bytes: those who read soon are not affected by those who do not. */
  function closeLargestUse(): void {
    const [largest] = [...responses].toSorted((a, b) => b.use.unreadBytes - a.use.unreadBytes)
    if (largest === undefined) return
    release(largest)
    largest.close()
  }

  return {
    acquire,
    get open() {
      return all.requests
    },
    get unreadBytes() {
      return all.unreadBytes
    },
  }
}

function refusal(limit: 'requestsPerClient' | 'requestsInAll' | 'unreadBytes', size: number, reason: string) {
  return new LimitFailure(`${size} ${reason}`, { limit, size, retryAfterMs: RETRY_MS })
}
