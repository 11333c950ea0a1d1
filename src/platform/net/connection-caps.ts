import { isIPv6 } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { createHeldMemory, HeldAmounts, type HeldMemory } from '../../core/held-amounts.ts'
import { createBucketMemory, createKeyedBuckets } from '../../core/keyed-buckets.ts'
import { SharedTable } from '../../core/shared-table.ts'

export type ConnectionCapsOptions = {
  /** Open connections in total. */
  connectionsMax?: number | undefined
  /** Open connections of one address. */
  perAddressMax?: number | undefined
  /** New connections of one address in a second, on average. At once it may open as many as it may have open. */
  perAddressPerSecond?: number | undefined
  /** Addresses without limits of their own, for instance a proxy in front; loopback by default. */
  isExempt?: ((address: string) => boolean) | undefined
}

export type ConnectionRefusal = 'connections' | 'address-connections' | 'address-rate'

export type ConnectionCaps = {
  /** Counts a new connection, or returns the limit that refuses it. */
  enter(address: string): ConnectionRefusal | undefined
  /** Removes a counted connection. */
  leave(address: string): void
  open(): number
  /** The size of each limit. */
  readonly sizes: Readonly<Record<ConnectionRefusal, number>>
}

const DEFAULTS = { connectionsMax: 20_000, perAddressMax: 200, perAddressPerSecond: 50 }

/** The connections of one port, counted over all threads that listen on it. */
export type ConnectionMemory = { readonly open: HeldMemory; readonly fresh: SharedArrayBuffer }
/** The same as one thread sees it: open ones, and the rate of new ones. */
export type ConnectionCounts = { readonly open: HeldAmounts; readonly fresh: SharedTable }

export function createConnectionMemory(threads: number): ConnectionMemory {
  return { open: createHeldMemory({ threads }), fresh: createBucketMemory() }
}

export function openConnectionCounts({ open, fresh }: ConnectionMemory, thread: number): ConnectionCounts {
  return { open: new HeldAmounts(open, thread), fresh: new SharedTable(fresh, thread) }
}

/** Without `counts` they are those of this listener alone. */
export function createConnectionCaps(
  options: ConnectionCapsOptions,
  clock: Clock,
  { open, fresh }: ConnectionCounts = openConnectionCounts(createConnectionMemory(1), 0),
): ConnectionCaps {
  const perSecond = options.perAddressPerSecond ?? DEFAULTS.perAddressPerSecond
  const isExempt = options.isExempt ?? isLoopbackAddress
  const maxima = {
    total: options.connectionsMax ?? DEFAULTS.connectionsMax,
    key: options.perAddressMax ?? DEFAULTS.perAddressMax,
  }
  // A program that opens all its connections when it starts is within both limits.
  const burst = Math.max(perSecond, maxima.key)
  const rates = createKeyedBuckets({ perSecond, burst }, () => clock.monotonicMs(), fresh)
  return {
    enter(address) {
      if (isExempt(address)) return open.takeUnkeyed(1, maxima.total) && 'connections'
      const key = peerKey(address)
      // Checked before the rate is charged, and again when the connection is counted.
      const full = open.exceeds(key, 1, maxima)
      if (full !== undefined) return REFUSALS[full]
      if (!rates.take(key).ok) return 'address-rate'
      const excess = open.take(key, 1, maxima)
      return excess && REFUSALS[excess]
    },
    leave(address) {
      if (isExempt(address)) open.releaseUnkeyed(1)
      else open.release(peerKey(address), 1)
    },
    open: () => open.total,
    sizes: { connections: maxima.total, 'address-connections': maxima.key, 'address-rate': perSecond },
  }
}

/** A table of addresses without room for one more is as full as the listener. */
const REFUSALS = { total: 'connections', key: 'address-connections' } as const

/** 127.0.0.0/8 and ::1, also as IPv4 inside IPv6. */
export function isLoopbackAddress(address: string): boolean {
  const unmapped = address.toLowerCase().replace(/^::ffff:/, '')
  return unmapped === '::1' || /^127\.\d+\.\d+\.\d+$/.test(unmapped)
}

/** An IPv6 /64 counts as one address, because one subscriber line commonly has all of it. */
export function peerKey(address: string): string {
  const unmapped = address
    .toLowerCase()
    .replace(/^::ffff:(?=\d+\.)/, '')
    .replace(/%[^]*/, '')
  if (!isIPv6(unmapped)) return unmapped
  const [head = '', tail = ''] = unmapped.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === '' ? [] : tail.split(':')
  const groups = unmapped.includes('::')
    ? [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right]
    : left
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
