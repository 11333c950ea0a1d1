import type { Clock } from '../core/clock.ts'
import { createClientAddress } from '../platform/net/client-address.ts'
import { peerKey } from '../platform/net/connection-caps.ts'

/** Who shows a token, as a door sees it. */
export type Peer = {
  readonly remoteAddress: string
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[]
}

/**
 * Slows down who tries tokens: after so many refused ones within the window, further ones from the same address are answered late and their
 * connection is closed. A valid token is never asked about here, so no one can lock its owner out.
 */
export type LateRefusals = {
  /** Counts one refused token; `answer` is called at once, or late, with whether the connection is to be closed after it. */
  refuse(peer: Peer, late: { inc(): void }, respond: (closes: boolean) => void): void
  /** The same for an answer that is a value: as it is, or late and with the word that it closes. */
  responded<Response extends object>(
    peer: Peer,
    late: { inc(): void },
    response: Response,
  ): Response | Promise<Response & { readonly closes: true }>
  /** The address of the client, past the proxies the operator trusts. */
  addressOf(peer: Peer): string
}

export type LateRefusalsOptions = {
  /** Addresses and networks whose `x-forwarded-for` is believed. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Refused tokens of one address within the window that are answered at once. */
  readonly failuresMax?: number | undefined
}

export const FAILURES_MAX = 20
const WINDOW_MS = 10_000
const LATE_MS = 1000
/** Addresses remembered; beyond it the one that began first is forgotten. */
const ADDRESSES_MAX = 10_000
/** Answers that wait at once; more are given at once, since waiting itself costs memory. */
const WAITING_MAX = 2000

type Failures = { sinceMs: number; count: number }

export function createLateRefusals(options: LateRefusalsOptions, clock: Clock): LateRefusals {
  const { trustedProxies = [], failuresMax = FAILURES_MAX } = options
  const clientAddress = createClientAddress(trustedProxies)
  const byAddress = new Map<string, Failures>()
  let waiting = 0

  function addressOf({ remoteAddress, headers }: Peer): string {
    const forwarded: string[] = []
    for (let at = 0; at + 1 < headers.length; at += 2) {
      if (headers[at]?.toLowerCase() === 'x-forwarded-for') forwarded.push(headers[at + 1] as string)
    }
    return clientAddress({ headersDistinct: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } })
  }

  /** Whether this failure comes after too many. Who goes on stays late until it has been quiet for a whole window. */
  function isTooMany(key: string): boolean {
    const nowMs = clock.monotonicMs()
    const known = byAddress.get(key)
    if (known === undefined) {
      const [oldest] = byAddress.keys()
      if (byAddress.size >= ADDRESSES_MAX && oldest !== undefined) byAddress.delete(oldest)
      byAddress.set(key, { sinceMs: nowMs, count: 1 })
      return false
    }
    if (nowMs - known.sinceMs >= WINDOW_MS) {
      known.count = 0
      known.sinceMs = nowMs
    }
    known.count += 1
    if (known.count <= failuresMax) return false
    known.sinceMs = nowMs
    return true
  }

  function whenDue(late: { inc(): void }, respond: () => void): void {
    late.inc()
    if (waiting >= WAITING_MAX) return respond()
    waiting += 1
    const timer = clock.setTimer(LATE_MS, () => {
      waiting -= 1
      respond()
    })
    timer.unref?.()
  }

  const isLate = (peer: Peer) => isTooMany(peerKey(addressOf(peer)))

  return {
    addressOf,
    refuse(peer, late, respond) {
      if (isLate(peer)) whenDue(late, () => respond(true))
      else respond(false)
    },
    responded(peer, late, response) {
      if (!isLate(peer)) return response
      return new Promise((resolve) => whenDue(late, () => resolve({ ...response, closes: true })))
    },
  }
}
