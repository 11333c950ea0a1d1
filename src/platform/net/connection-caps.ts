import { isIPv6 } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { TokenBucket } from '../../core/token-bucket.ts'

export type ConnectionCapsOptions = {
  /** Open connections in total. */
  connectionsMax?: number | undefined
  /** Open connections of one address. */
  perAddressMax?: number | undefined
  /** New connections of one address within a second. */
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
}

const DEFAULTS = { connectionsMax: 20_000, perAddressMax: 200, perAddressPerSecond: 50 }
/** Addresses in the table. When it is full, those without an open connection are dropped. */
const ADDRESSES_MAX = 65_536
const PRUNE_PERIOD_MS = 10_000

type Peer = { open: number; bucket: TokenBucket }

export function createConnectionCaps(options: ConnectionCapsOptions, clock: Clock): ConnectionCaps {
  const connectionsMax = options.connectionsMax ?? DEFAULTS.connectionsMax
  const perAddressMax = options.perAddressMax ?? DEFAULTS.perAddressMax
  const perSecond = options.perAddressPerSecond ?? DEFAULTS.perAddressPerSecond
  const isExempt = options.isExempt ?? isLoopbackAddress
  const peers = new Map<string, Peer>()
  let open = 0
  let pruneAtMs = clock.monotonicMs() + PRUNE_PERIOD_MS

  function pruneIdle(nowMs: number): void {
    if (nowMs < pruneAtMs && peers.size < ADDRESSES_MAX) return
    pruneAtMs = nowMs + PRUNE_PERIOD_MS
    const isFull = peers.size >= ADDRESSES_MAX
    for (const [key, peer] of peers) {
      if (peer.open === 0 && (isFull || peer.bucket.fullInMs(nowMs) === 0)) peers.delete(key)
    }
  }

  return {
    enter(address) {
      if (open >= connectionsMax) return 'connections'
      if (!isExempt(address)) {
        const nowMs = clock.monotonicMs()
        pruneIdle(nowMs)
        const key = peerKey(address)
        let peer = peers.get(key)
        if (!peer) {
          // Every address in the table has an open connection.
          if (peers.size >= ADDRESSES_MAX) return 'connections'
          peer = { open: 0, bucket: new TokenBucket({ capacity: perSecond, perSecond }, nowMs) }
          peers.set(key, peer)
        }
        if (peer.open >= perAddressMax) return 'address-connections'
        if (!peer.bucket.take(1, nowMs)) return 'address-rate'
        peer.open += 1
      }
      open += 1
      return undefined
    },
    leave(address) {
      open -= 1
      if (isExempt(address)) return
      const peer = peers.get(peerKey(address))
      if (peer) peer.open -= 1
    },
    open: () => open,
  }
}

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
