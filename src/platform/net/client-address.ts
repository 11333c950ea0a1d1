import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { ServiceError } from '../../core/error.ts'

/** More hops than this are not looked at: the header is then made up. */
const HOPS_MAX = 16

type Request = Pick<IncomingMessage, 'headersDistinct'> & { socket: { remoteAddress?: string | undefined } }

/**
 * Whose request this is, for limits by address. The socket's address counts; only when the socket belongs to a proxy the
 * operator named is `x-forwarded-for` believed, and of it only the right-most hop that is not such a proxy, since all to
 * its left can be made up by the caller.
 */
export function createClientAddress(trustedProxies: readonly string[]): (request: Request) => string {
  const isTrusted = createAddressSet(trustedProxies)
  return (request) => {
    let address = unmap(request.socket.remoteAddress ?? '')
    if (!isTrusted(address)) return address
    const hops = (request.headersDistinct['x-forwarded-for'] ?? []).join(',').split(',')
    for (const hop of hops.toReversed().slice(0, HOPS_MAX)) {
      const next = unmap(hop.trim().replace(/^\[(.*)\]$/, '$1'))
      // A hop that is no address was not written by a proxy we trust.
      if (isIP(next) === 0) return address
      address = next
      if (!isTrusted(address)) return address
    }
    return address
  }
}

/** Addresses and networks (`10.0.0.0/8`, `::1`). Each family has its own list: in a mixed one `::ffff:0:0/96` matches all. */
export function createAddressSet(entries: readonly string[]): (address: string) => boolean {
  const lists = { 4: new BlockList(), 6: new BlockList() }
  for (const entry of entries) {
    const [given = '', prefix] = entry.split('/')
    const net = unmap(given)
    const family = isIP(net)
    const bits = prefix === undefined ? (family === 4 ? 32 : 128) : Number(prefix)
    if ((family !== 4 && family !== 6) || !Number.isInteger(bits) || bits < 0 || bits > (family === 4 ? 32 : 128)) {
      throw new ServiceError('config-invalid', `${entry} is neither an address nor a network`, {
        fix: 'Write an address such as 192.0.2.1 or a network such as 10.0.0.0/8.',
      })
    }
    lists[family].addSubnet(net, bits, family === 4 ? 'ipv4' : 'ipv6')
  }
  return (address) => {
    const plain = unmap(address)
    const family = isIP(plain)
    return (family === 4 || family === 6) && lists[family].check(plain, family === 4 ? 'ipv4' : 'ipv6')
  }
}

/** IPv4 that came in on an IPv6 socket. */
function unmap(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}
