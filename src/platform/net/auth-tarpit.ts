import type { Clock } from '../../core/clock.ts'
import type { SharedTable } from '../../core/shared-table.ts'
import { createWindowCounts, createWindowMemory, createWindowTable } from '../../core/window-counts.ts'
import { createClientAddress } from './client-address.ts'
import { peerKey } from './connection-caps.ts'

/** The client of a connection. */
export type Peer = {
  readonly remoteAddress: string
  /** Names and values alternating, as received. */
  readonly headers: readonly string[]
}

/**
 * Slows down guessing of tokens: after too many refused tokens of one address within the window, further refusals are delayed and close
 * the connection. Valid tokens do not pass through here, so an attacker cannot lock out their owner.
 */
export type AuthTarpit = {
  /** Counts one refused token. Calls `respond` at once or delayed, with whether the connection must be closed afterwards. */
  refuse(peer: Peer, counter: { inc(): void }, respond: (closes: boolean) => void): void
  /** The same for a response that is a value: unchanged, or delayed and with `closes`. */
  delayResponse<Response extends object>(
    peer: Peer,
    counter: { inc(): void },
    response: Response,
  ): Response | Promise<Response & { readonly closes: true }>
  /** The address of the client, behind any trusted proxies. */
  addressOf(peer: Peer): string
}

export type AuthTarpitOptions = {
  /** Addresses and networks of proxies whose `x-forwarded-for` is used. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Refused tokens of one address within the window before refusals are delayed. */
  readonly failuresMax?: number | undefined
}

export const FAILURES_MAX = 20
const WINDOW_MS = 10_000
const DELAY_MS = 1000
/** Addresses tracked; beyond it those without a failure for the longest time are dropped. */
const ADDRESSES_MAX = 10_000
/** Delayed refusals at once; further ones are sent at once, since a delay costs memory. */
const DELAYED_MAX = 2000

/** The failures of a process: all its threads count in it. */
export const createFailureMemory = (): SharedArrayBuffer => createWindowMemory(ADDRESSES_MAX)

/** Without `table` the failures are those of this thread alone. */
export function createAuthTarpit(
  options: AuthTarpitOptions,
  clock: Clock,
  table: SharedTable = createWindowTable(ADDRESSES_MAX),
): AuthTarpit {
  const { trustedProxies = [], failuresMax = FAILURES_MAX } = options
  const clientAddress = createClientAddress(trustedProxies)
  const failures = createWindowCounts(table, WINDOW_MS, () => clock.monotonicMs())
  let delayed = 0

  function addressOf({ remoteAddress, headers }: Peer): string {
    const forwarded: string[] = []
    for (let at = 0; at + 1 < headers.length; at += 2) {
      if (headers[at]?.toLowerCase() === 'x-forwarded-for') forwarded.push(headers[at + 1] as string)
    }
    return clientAddress({ headersDistinct: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } })
  }

  /** Whether this failure is one too many. Each further failure restarts the window, so delays end only after a window without one. */
  function isTooMany(key: string): boolean {
    return failures.add(key, failuresMax) > failuresMax
  }

  function delay(counter: { inc(): void }, respond: () => void): void {
    counter.inc()
    if (delayed >= DELAYED_MAX) return respond()
    delayed += 1
    const timer = clock.setTimer(DELAY_MS, () => {
      delayed -= 1
      respond()
    })
    timer.unref?.()
  }

  const isDelayed = (peer: Peer) => isTooMany(peerKey(addressOf(peer)))

  return {
    addressOf,
    refuse(peer, counter, respond) {
      if (isDelayed(peer)) delay(counter, () => respond(true))
      else respond(false)
    },
    delayResponse(peer, counter, response) {
      if (!isDelayed(peer)) return response
      return new Promise((resolve) => delay(counter, () => resolve({ ...response, closes: true })))
    },
  }
}
