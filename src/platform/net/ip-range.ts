import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net'

/** The kind of a literal address. IPv4 and IPv6 have separate lists: `::ffff:0:0/96` in one list would match every IPv4 address. */
export type AddressKind =
  | 'public'
  | 'loopback'
  | 'private'
  | 'link-local'
  | 'carrier-nat'
  | 'multicast'
  | 'broadcast'
  | 'unspecified'
  | 'reserved'
  | 'ipv4-mapped'

const V4_RANGES: readonly (readonly [AddressKind, string, number])[] = [
  ['broadcast', '255.255.255.255', 32],
  ['unspecified', '0.0.0.0', 8],
  ['loopback', '127.0.0.0', 8],
  ['private', '10.0.0.0', 8],
  ['private', '172.16.0.0', 12],
  ['private', '192.168.0.0', 16],
  ['link-local', '169.254.0.0', 16],
  ['carrier-nat', '100.64.0.0', 10],
  ['multicast', '224.0.0.0', 4],
  ['reserved', '192.0.0.0', 24],
  ['reserved', '192.0.2.0', 24],
  ['reserved', '192.88.99.0', 24],
  ['reserved', '198.18.0.0', 15],
  ['reserved', '198.51.100.0', 24],
  ['reserved', '203.0.113.0', 24],
  ['reserved', '240.0.0.0', 4],
]

const V6_RANGES: readonly (readonly [AddressKind, string, number])[] = [
  ['unspecified', '::', 128],
  ['loopback', '::1', 128],
  ['ipv4-mapped', '::ffff:0:0', 96],
  ['reserved', '64:ff9b::', 96],
  ['reserved', '64:ff9b:1::', 48],
  ['reserved', '100::', 64],
  ['reserved', '2001::', 23],
  ['reserved', '2001:db8::', 32],
  ['reserved', '2002::', 16],
  ['private', 'fc00::', 7],
  ['link-local', 'fe80::', 10],
  ['multicast', 'ff00::', 8],
  ['reserved', '3fff::', 20],
  ['reserved', '5f00::', 16],
  // IPv4-compatible addresses (deprecated by RFC 4291), which include :: and ::1 above.
  ['reserved', '::', 96],
]

const listsOf = (ranges: typeof V4_RANGES, family: 'ipv4' | 'ipv6') =>
  ranges.map(([kind, net, prefix]) => {
    const list = new BlockList()
    list.addSubnet(net, prefix, family)
    return { kind, list }
  })

const V4_LISTS = listsOf(V4_RANGES, 'ipv4')
const V6_LISTS = listsOf(V6_RANGES, 'ipv6')

/** Undefined when the text is not a literal address: names, octal, hex and short forms are not. */
export function addressKind(ip: string): AddressKind | undefined {
  if (isIPv4(ip)) return V4_LISTS.find(({ list }) => list.check(ip, 'ipv4'))?.kind ?? 'public'
  if (isIPv6(ip) && !ip.includes('%')) return V6_LISTS.find(({ list }) => list.check(ip, 'ipv6'))?.kind ?? 'public'
  return undefined
}

/** `1.2.3.4:5` or `[::1]:5`, with the address in its canonical form; undefined when it is neither. */
export function parseAddressPort(text: string): { ip: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]{2,45})\]|([0-9.]{7,15})):([1-9][0-9]{0,4})$/.exec(text)
  const ip = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (ip === undefined || addressKind(ip) === undefined || port > 65535) return undefined
  return match?.[1] !== undefined && isIPv4(ip) ? undefined : { ip: canonicalIp(ip), port }
}

/** One spelling for each address, that of the system (RFC 5952): texts can be compared. Unchanged where it is no address. */
export function canonicalIp(ip: string): string {
  return isIPv6(ip) && !ip.includes('%') ? new SocketAddress({ address: ip, family: 'ipv6' }).address : ip
}

export function printAddressPort(ip: string, port: number): string {
  return isIPv6(ip) ? `[${ip}]:${port}` : `${ip}:${port}`
}
