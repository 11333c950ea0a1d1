import { lookup as systemLookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { type AddressKind, addressKind } from './ip-range.ts'

/** The address of a node as configured. */
export type RemoteAddress = {
  readonly host: string
  readonly port: number
  readonly secure: boolean
  /** Begins with a slash. May contain a secret, in its query too, so it is never logged. */
  readonly path: string
}

export type AddressOutcome =
  | { readonly ok: true; readonly ip: string }
  | { readonly ok: false; readonly reason: 'refused' | 'unresolved'; readonly message: string }

/**
 * The one IP address that a remote name is pinned to. It is resolved once; after a lost connection it is resolved and checked again, so that a name
 * cannot be moved to a forbidden address.
 */
export type PinnedAddress = {
  readonly remote: RemoteAddress
  /** The address to connect to. Resolves the name only where nothing is pinned or a connection was lost since. */
  current(): Promise<AddressOutcome>
  /** The pinned address, where no lookup is due. */
  known(): string | undefined
  /** A connection broke or could not be opened: the name is resolved again before the next one, which in the second case uses the next address. */
  lost(how: 'broken' | 'unreachable'): void
}

export type PinnedAddressOptions = {
  /** Whether loopback, private networks and carrier NAT are allowed. */
  readonly allowPrivate: boolean
}

export type PinnedAddressDeps = {
  readonly lookup?: ((host: string) => Promise<readonly string[]>) | undefined
  /** Without it a lookup is waited for as long as it lasts. */
  readonly clock?: Pick<Clock, 'setTimer'> | undefined
}

/** A lookup that lasts longer is not waited for where an address is pinned: the name service is down, and the node need not be. */
const LOOKUP_MS_MAX = 1000

const PRIVATE_KINDS: readonly AddressKind[] = ['loopback', 'private', 'carrier-nat']

/** Metadata services inside private ranges: those of Amazon, Google and Oracle over IPv6, and Alibaba's. 169.254/16 is refused as link-local. */
const METADATA = new BlockList()
METADATA.addAddress('fd20:ce::254', 'ipv6')
METADATA.addAddress('fd00:c1::a9fe:a9fe', 'ipv6')
METADATA.addAddress('fd00:ec2::254', 'ipv6')
METADATA.addAddress('100.100.100.200', 'ipv4')

export function createPinnedAddress(
  remote: RemoteAddress,
  { allowPrivate }: PinnedAddressOptions,
  { lookup = lookupAll, clock }: PinnedAddressDeps = {},
): PinnedAddress {
  let pinned: string | undefined
  let isDue = true
  let isUnreachable = false
  let running: Promise<AddressOutcome> | undefined
  /** The running lookup has lasted too long. */
  let isLate = false

  async function resolveName(): Promise<AddressOutcome> {
    let found: readonly string[]
    try {
      found = isIP(remote.host) === 0 ? await lookup(remote.host) : [remote.host]
    } catch (error) {
      // A failed name service must not take down a healthy node: the pinned address was checked before.
      if (pinned !== undefined) return { ok: true, ip: pinned }
      return { ok: false, reason: 'unresolved', message: `the name does not resolve: ${codeOf(error)}` }
    }
    const [first] = found
    if (first === undefined) return { ok: false, reason: 'unresolved', message: 'the name has no address' }
    // One forbidden address among several refuses the name.
    for (const ip of found) {
      const message = objectToAddress(ip, allowPrivate)
      if (message !== undefined) return { ok: false, reason: 'refused', message }
    }
    const index = pinned === undefined ? -1 : found.indexOf(pinned)
    // Not all addresses of a name need be reachable from here.
    if (index === -1) pinned = first
    else if (isUnreachable) pinned = found[(index + 1) % found.length] as string
    isDue = false
    isUnreachable = false
    return { ok: true, ip: pinned as string }
  }

  /** The pinned address where the lookup is late; its result is used by the connection after it. */
  function inTime(
    resolving: Promise<AddressOutcome>,
    ip: string,
    timers: Pick<Clock, 'setTimer'>,
  ): Promise<AddressOutcome> {
    const known = { ok: true, ip } as const
    if (isLate) return Promise.resolve(known)
    return new Promise((resolve) => {
      const timer = timers.setTimer(LOOKUP_MS_MAX, () => {
        isLate = running === resolving
        resolve(known)
      })
      void resolving.then((outcome) => {
        timer.cancel()
        resolve(outcome)
      })
    })
  }

  return {
    remote,
    current() {
      if (!isDue && pinned !== undefined) return Promise.resolve({ ok: true, ip: pinned })
      running ??= resolveName().finally(() => {
        running = undefined
        isLate = false
      })
      return pinned === undefined || clock === undefined ? running : inTime(running, pinned, clock)
    },
    known: () => (isDue ? undefined : pinned),
    lost(how) {
      isDue = true
      if (how === 'unreachable') isUnreachable = true
    },
  }
}

/** The end of the message about an address that only needs to be allowed. */
export const SET_ALLOW_PRIVATE = 'set allowPrivate = true to allow it'

/** Why this address is forbidden; undefined when it is allowed. */
export function objectToAddress(ip: string, allowPrivate: boolean): string | undefined {
  const kind = addressKind(ip)
  if (kind === undefined) return 'the name does not resolve to an address'
  if (METADATA.check(ip, isIP(ip) === 4 ? 'ipv4' : 'ipv6')) return 'the address is that of a metadata service'
  if (kind === 'public') return undefined
  if (!PRIVATE_KINDS.includes(kind)) return `the address is ${kind}, which is never connected to`
  return allowPrivate ? undefined : `the address is ${kind}; ${SET_ALLOW_PRIVATE}`
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'ws:': 80, 'https:': 443, 'wss:': 443 }

/** An origin with an optional path; undefined for anything else. A query is accepted only with `mayHaveQuery`, for an address that is itself a secret. */
export function parseRemoteAddress(
  text: string,
  protocols: readonly string[],
  { mayHaveQuery = false }: { readonly mayHaveQuery?: boolean } = {},
): RemoteAddress | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !protocols.includes(url.protocol)) return undefined
  if (url.username !== '' || url.password !== '' || url.hash !== '' || url.hostname === '') return undefined
  if (text.includes('?') && !mayHaveQuery) return undefined
  return {
    // IPv6 has brackets in a URL only.
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? (DEFAULT_PORTS[url.protocol] as number) : Number(url.port),
    secure: url.protocol === 'https:' || url.protocol === 'wss:',
    path: url.pathname + url.search,
  }
}

/** The value of a Host header: brackets around IPv6, no port where it is the default one. */
export function hostHeader({ host, port, secure }: RemoteAddress): string {
  const name = isIP(host) === 6 ? `[${host}]` : host
  return port === (secure ? 443 : 80) ? name : `${name}:${port}`
}

/** The code of the name service; its message contains the name. */
function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'lookup failed'
}

async function lookupAll(host: string): Promise<readonly string[]> {
  const found = await systemLookup(host, { all: true })
  return found.map(({ address }) => address)
}
