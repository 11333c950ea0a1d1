import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { ServiceError } from '../../core/error.ts'

/** Hops that are read; a longer header is forged. */
const HOPS_MAX = 16

type Request = Pick<IncomingMessage, 'headersDistinct'> & { socket: { remoteAddress?: string | undefined } }

/**
 * The client address of a request, for limits by address. It is the socket's address; behind a trusted proxy it is the right-most hop of
 * `x-forwarded-for` that is not a trusted proxy itself, since the caller can forge everything to its left.
 */
export function createClientAddress(trustedProxies: readonly string[]): (request: Request) => string {
  const isTrusted = createAddressSet(trustedProxies)
  return (request) => {
    let address = unmap(request.socket.remoteAddress ?? '')
    if (!isTrusted(address)) return address
    const hops = (request.headersDistinct['x-forwarded-for'] ?? []).join(',').split(',')
    for (const hop of hops.toReversed().slice(0, HOPS_MAX)) {
      const next = unmap(hop.trim().replace(/^\[(.*)\]$/, '$1'))
      // A trusted proxy writes only addresses.
      if (isIP(next) === 0) return address
      address = next
      if (!isTrusted(address)) return address
    }
    return address
  }
}

/** A set of addresses and networks (`10.0.0.0/8`, `::1`). Each family has its own list: in a mixed one `::ffff:0:0/96` matches all IPv4. */
export function createAddressSet(entries: readonly string[]): (address: string) => boolean {
  const lists = { 4: new BlockList(), 6: new BlockList() }
  for (const entry of entries) {
    const network = parseNetwork(entry)
    if (network === undefined) {
      throw new ServiceError('config-invalid', `${entry} is neither an address nor a network`, {
        fix: 'Write an address such as 192.0.2.1 or a network such as 10.0.0.0/8.',
      })
    }
    const { net, bits, family } = network
    lists[family].addSubnet(net, bits, family === 4 ? 'ipv4' : 'ipv6')
  }
  return (address) => {
    const unmapped = unmap(address)
    const family = isIP(unmapped)
    return (family === 4 || family === 6) && lists[family].check(unmapped, family === 4 ? 'ipv4' : 'ipv6')
  }
}

/** Whether `createAddressSet` accepts the text. */
export function isAddressOrNetwork(text: string): boolean {
  return parseNetwork(text) !== undefined
}

function parseNetwork(
  entry: string,
): { readonly net: string; readonly bits: number; readonly family: 4 | 6 } | undefined {
  const [base = '', prefix, ...more] = entry.split('/')
  const net = unmap(base)
  const family = isIP(net)
  if ((family !== 4 && family !== 6) || more.length > 0) return undefined
  const bitsMax = family === 4 ? 32 : 128
  // A prefix without digits is no prefix of 0, which would match every address.
  if (prefix !== undefined && !/^\d{1,3}$/.test(prefix)) return undefined
  const bits = prefix === undefined ? bitsMax : Number(prefix)
  return bits <= bitsMax ? { net, bits, family } : undefined
}

/** IPv4-mapped IPv6, as an IPv6 socket reports IPv4 peers, becomes IPv4. */
function unmap(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}
