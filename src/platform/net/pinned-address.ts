import { lookup as systemLookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { messageOf } from '../../core/error.ts'
import { type AddressKind, addressKind } from './ip-range.ts'

/** Where a node is, as the operator wrote it. */
export type RemoteAddress = {
  readonly host: string
  readonly port: number
  readonly secure: boolean
  /** Begins with a slash; a node address has no query. */
  readonly path: string
}

export type AddressOutcome =
  | { readonly ok: true; readonly ip: string }
  | { readonly ok: false; readonly reason: 'refused' | 'unresolved'; readonly message: string }

/**
 * The one address a remote name stands for. It is looked up once and kept; after a loss it is looked up again and put to
 * the same rules, so that a name cannot be moved to a forbidden place behind our back.
 */
export type PinnedAddress = {
  readonly remote: RemoteAddress
  /** The address to connect to. Asks the name service only where nothing is pinned or something was lost since. */
  current(): Promise<AddressOutcome>
  /** The pinned address when no look-up is due. */
  known(): string | undefined
  /** A connection broke, or could not be made: look again before the next one, and in the second case at the next address. */
  lost(how: 'broken' | 'unreachable'): void
}

export type PinnedAddressOptions = {
  /** Loopback, private networks and carrier NAT are reachable only when the operator says so. */
  readonly allowPrivate: boolean
}

export type PinnedAddressDeps = { readonly lookup?: (host: string) => Promise<readonly string[]> }

const PRIVATE_KINDS: readonly AddressKind[] = ['loopback', 'private', 'carrier-nat']

/** Metadata services that lie inside private ranges: Amazon's over IPv6 and Alibaba's. 169.254/16 is refused as link-local. */
const METADATA = new BlockList()
METADATA.addAddress('fd00:ec2::254', 'ipv6')
METADATA.addAddress('100.100.100.200', 'ipv4')

export function createPinnedAddress(
  remote: RemoteAddress,
  { allowPrivate }: PinnedAddressOptions,
  { lookup = lookupAll }: PinnedAddressDeps = {},
): PinnedAddress {
  let pinned: string | undefined
  let isDue = true
  let isUnreachable = false
  let running: Promise<AddressOutcome> | undefined

  async function look(): Promise<AddressOutcome> {
    let found: readonly string[]
    try {
      found = isIP(remote.host) === 0 ? await lookup(remote.host) : [remote.host]
    } catch (error) {
      // A name service that is down takes no healthy node with it: the pinned address passed the rules before.
      if (pinned !== undefined) return { ok: true, ip: pinned }
      return { ok: false, reason: 'unresolved', message: `the name does not resolve: ${messageOf(error)}` }
    }
    const [first] = found
    if (first === undefined) return { ok: false, reason: 'unresolved', message: 'the name has no address' }
    // One forbidden address among several refuses them all: no honest name has one.
    for (const ip of found) {
      const message = objectToAddress(ip, allowPrivate)
      if (message !== undefined) return { ok: false, reason: 'refused', message }
    }
    const at = pinned === undefined ? -1 : found.indexOf(pinned)
    // A name may stand for several addresses of which not all can be reached from here.
    if (at === -1) pinned = first
    else if (isUnreachable) pinned = found[(at + 1) % found.length] as string
    isDue = false
    isUnreachable = false
    return { ok: true, ip: pinned as string }
  }

  return {
    remote,
    current() {
      if (!isDue && pinned !== undefined) return Promise.resolve({ ok: true, ip: pinned })
      running ??= look().finally(() => {
        running = undefined
      })
      return running
    },
    known: () => (isDue ? undefined : pinned),
    lost(how) {
      isDue = true
      if (how === 'unreachable') isUnreachable = true
    },
  }
}

/** Why this address may not be connected to; undefined when it may. */
export function objectToAddress(ip: string, allowPrivate: boolean): string | undefined {
  const kind = addressKind(ip)
  if (kind === undefined) return 'the name resolves to something that is no address'
  if (METADATA.check(ip, isIP(ip) === 4 ? 'ipv4' : 'ipv6')) return 'the address is that of a metadata service'
  if (kind === 'public') return undefined
  if (!PRIVATE_KINDS.includes(kind)) return `the address is ${kind}, which is never connected to`
  return allowPrivate ? undefined : `the address is ${kind}; set allowPrivate = true where that is wanted`
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'ws:': 80, 'https:': 443, 'wss:': 443 }

/** A plain origin with an optional path; undefined for anything else, and for what could carry a secret. */
export function parseRemoteAddress(text: string, protocols: readonly string[]): RemoteAddress | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !protocols.includes(url.protocol)) return undefined
  if (url.username !== '' || url.password !== '' || url.hash !== '' || text.includes('?') || url.hostname === '') {
    return undefined
  }
  return {
    // IPv6 stands in brackets in a URL only.
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? (DEFAULT_PORTS[url.protocol] as number) : Number(url.port),
    secure: url.protocol === 'https:' || url.protocol === 'wss:',
    path: url.pathname,
  }
}

/** The value of a Host header: brackets round IPv6, no port where it is the default one. */
export function hostHeader({ host, port, secure }: RemoteAddress): string {
  const name = isIP(host) === 6 ? `[${host}]` : host
  return port === (secure ? 443 : 80) ? name : `${name}:${port}`
}

async function lookupAll(host: string): Promise<readonly string[]> {
  const found = await systemLookup(host, { all: true })
  return found.map(({ address }) => address)
}
