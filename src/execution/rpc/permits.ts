import type { WorkOwner } from '../api/work-budget.ts'
import { LimitFailure } from './failure.ts'

export type RpcPermitsOptions = {
  /** Concurrent requests of one owner, from the request head to the last byte of the response. */
  readonly perClientMax: number
  readonly inAllMax: number
  /** Unread response bytes of one owner, and of all owners. */
  readonly unreadPerClientMax: number
  readonly unreadInAllMax: number
}

export type RpcPermit = Disposable & {
  /** Counts the bytes of a response until the permit is released; throws a LimitFailure over the limit. */
  holdResponse(bytes: number): void
}

export type RpcPermits = {
  /** Throws a LimitFailure when too many requests are open. */
  acquire(owner: WorkOwner): RpcPermit
  readonly open: number
  readonly unreadBytes: number
}

const RETRY_MS = 1000

type Use = { requests: number; unreadBytes: number }

/** Limits the memory of open requests, per owner and in total. */
export function createRpcPermits(options: RpcPermitsOptions): RpcPermits {
  const { perClientMax, inAllMax, unreadPerClientMax, unreadInAllMax } = options
  const uses = new Map<WorkOwner, Use>()
  const all: Use = { requests: 0, unreadBytes: 0 }

  function acquire(owner: WorkOwner): RpcPermit {
    const use = uses.get(owner) ?? { requests: 0, unreadBytes: 0 }
    if (use.requests >= perClientMax)
      throw refusal('requestsPerClient', perClientMax, 'requests of one client at a time')
    if (all.requests >= inAllMax) throw refusal('requestsInAll', inAllMax, 'requests at a time')
    uses.set(owner, use)
    let held = 0
    let isOpen = true
    const change = (requests: number, bytes: number): void => {
      for (const one of [use, all]) {
        one.requests += requests
        one.unreadBytes += bytes
      }
    }
    change(1, 0)
    return {
      holdResponse(bytes) {
        if (use.unreadBytes + bytes > unreadPerClientMax || all.unreadBytes + bytes > unreadInAllMax)
          throw refusal('unreadBytes', unreadPerClientMax, 'bytes of responses that were not read')
        held += bytes
        change(0, bytes)
      },
      [Symbol.dispose]() {
        if (!isOpen) return
        isOpen = false
        change(-1, -held)
        if (use.requests === 0) uses.delete(owner)
      },
    }
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
