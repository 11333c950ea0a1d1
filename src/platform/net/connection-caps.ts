import { isIPv6 } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { TokenBucket } from '../../core/token-bucket.ts'

export type ConnectionCapsOptions = {
  /** Open connections in all. */
  connectionsMax?: number | undefined
  /** Open connections of one address. */
  perAddressMax?: number | undefined
  /** New connections of one address within a second. */
  perAddressPerSecond?: number | undefined
  /** Addresses that are not counted one by one, for instance a proxy in front; loopback by default. */
  isExempt?: ((address: string) => boolean) | undefined
}

export type ConnectionRefusal = 'connections' | 'address-connections' | 'address-rate'

export type ConnectionCaps = {
  /** Counts the connection in, or says which limit it met. */
  enter(address: string): ConnectionRefusal | undefined
  /** Takes out a connection that was counted in. */
  leave(address: string): void
  open(): number
}

/** Defaults of the limits table: 200 connections and 50 new ones a second for each address. */
const DEFAULTS = { connectionsMax: 20_000, perAddressMax: 200, perAddressPerSecond: 50 }
/** Addresses remembered at once. Beyond it the ones without an open connection are forgotten first. */
const ADDRESSES_MAX = 65_536
const FORGET_PERIOD_MS = 10_000

type Peer = { open: number; bucket: TokenBucket }

export function createConnectionCaps(options: ConnectionCapsOptions, clock: Clock): ConnectionCaps {
  const connectionsMax = options.connectionsMax ?? DEFAULTS.connectionsMax
  const perAddressMax = options.perAddressMax ?? DEFAULTS.perAddressMax
  const perSecond = options.perAddressPerSecond ?? DEFAULTS.perAddressPerSecond
  const isExempt = options.isExempt ?? isLoopbackAddress
  const peers = new Map<string, Peer>()
  let open = 0
  let forgetAtMs = clock.monotonicMs() + FORGET_PERIOD_MS

  function forgetQuiet(nowMs: number): void {
    if (nowMs < forgetAtMs && peers.size < ADDRESSES_MAX) return
    forgetAtMs = nowMs + FORGET_PERIOD_MS
    const crowded = peers.size >= ADDRESSES_MAX
    for (const [key, peer] of peers) {
      if (peer.open === 0 && (crowded || peer.bucket.fullInMs(nowMs) === 0)) peers.delete(key)
    }
  }

  return {
    enter(address) {
      if (open >= connectionsMax) return 'connections'
      if (!isExempt(address)) {
        const nowMs = clock.monotonicMs()
        forgetQuiet(nowMs)
        const key = peerKey(address)
        let peer = peers.get(key)
        if (!peer) {
          // Every remembered address has an open connection: the whole house is full.
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
  const plain = address.toLowerCase().replace(/^::ffff:/, '')
  return plain === '::1' || /^127\.\d+\.\d+\.\d+$/.test(plain)
}

/** One customer's line commonly has a whole IPv6 /64, so that counts as one address. */
export function peerKey(address: string): string {
  const plain = address
    .toLowerCase()
    .replace(/^::ffff:(?=\d+\.)/, '')
    .replace(/%[^]*/, '')
  if (!isIPv6(plain)) return plain
  const [head = '', tail = ''] = plain.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === '' ? [] : tail.split(':')
  const groups = plain.includes('::')
    ? [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right]
    : left
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
