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
  /** The body of the request has arrived. */
  bodyRead(): void
  /**
   * Counts the bytes of a response until the permit is released; throws a LimitFailure over the limit of its owner. Over the limit of all
   * owners other responses are closed, by their `close`.
   */
  holdResponse(bytes: number, close: () => void): void
}

export type RpcPermits = {
  /**
   * Throws a LimitFailure when too many requests are open. Until its body has arrived, a request may be closed by `closeRequest` in favour of
   * another one: connections that send no body do not stop those that do.
   */
  acquire(owner: WorkOwner, closeRequest?: () => void): RpcPermit
  readonly open: number
  readonly unreadBytes: number
}

const RETRY_MS = 1000

type Use = { requests: number; unreadBytes: number }

type OpenBody = { readonly use: Use; readonly close: () => void }

type HeldResponse = { readonly use: Use; readonly bytes: number; readonly close: () => void }

/** Limits the memory of open requests, per owner and in total. */
export function createRpcPermits(options: RpcPermitsOptions): RpcPermits {
  const { perClientMax, inAllMax, unreadPerClientMax, unreadInAllMax, smallBytesMax } = options
  const uses = new Map<WorkOwner, Use>()
  const all: Use = { requests: 0, unreadBytes: 0 }
  /** The longest awaited first. */
  const bodies = new Set<OpenBody>()
  /** The longest held first. */
  const responses = new Set<HeldResponse>()

  function acquire(owner: WorkOwner, closeRequest?: () => void): RpcPermit {
    const use = uses.get(owner) ?? { requests: 0, unreadBytes: 0 }
    if (use.requests >= perClientMax)
      throw refusal('requestsPerClient', perClientMax, 'requests of one client at a time')
    if (all.requests >= inAllMax) firstOfLargestUse(bodies, 'requests')?.close()
    if (all.requests >= inAllMax) throw refusal('requestsInAll', inAllMax, 'requests at a time')
    uses.set(owner, use)
    for (const one of [use, all]) one.requests += 1
    let held: HeldResponse | undefined
    let isOpen = true
    const body: OpenBody = {
      use,
      close() {
        release()
        closeRequest?.()
      },
    }
    if (closeRequest !== undefined) bodies.add(body)
    return {
      bodyRead: () => void bodies.delete(body),
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
      [Symbol.dispose]: release,
    }

    function release(): void {
      if (!isOpen) return
      isOpen = false
      bodies.delete(body)
      if (held !== undefined) releaseResponse(held)
      for (const one of [use, all]) one.requests -= 1
      if (use.requests === 0) uses.delete(owner)
    }
  }

  function releaseResponse(response: HeldResponse): void {
    if (!responses.delete(response)) return
    for (const one of [response.use, all]) one.unreadBytes -= response.bytes
  }

  /** Those who read soon are not affected by those who do not. */
  function closeLargestUse(): void {
    const largest = firstOfLargestUse(responses, 'unreadBytes')
    if (largest === undefined) return
    releaseResponse(largest)
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

/** The longest held of the owner with the most. */
function firstOfLargestUse<Held extends { readonly use: Use }>(held: Iterable<Held>, of: keyof Use): Held | undefined {
  return [...held].toSorted((a, b) => b.use[of] - a.use[of])[0]
}

function refusal(limit: 'requestsPerClient' | 'requestsInAll' | 'unreadBytes', size: number, reason: string) {
  return new LimitFailure(`${size} ${reason}`, { limit, size, retryAfterMs: RETRY_MS })
}
