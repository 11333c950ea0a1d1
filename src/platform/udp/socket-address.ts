import { isIPv4, isIPv6 } from 'node:net'
import { LINUX } from './system-calls.ts'

/** Bytes of struct sockaddr_in and sockaddr_in6. */
const V4_BYTES = 16
const V6_BYTES = 28

/** A sockaddr structure: family in machine byte order, port and address in network byte order. */
export function encodeSocketAddress({ ip, port }: { readonly ip: string; readonly port: number }): Uint8Array {
  if (isIPv4(ip)) {
    const bytes = new Uint8Array(V4_BYTES)
    bytes.set([LINUX.AF_INET, 0, port >> 8, port & 255, ...ip.split('.').map(Number)])
    return bytes
  }
  if (!isIPv6(ip) || ip.includes('%')) throw new TypeError('not a literal address')
  const bytes = new Uint8Array(V6_BYTES)
  bytes.set([LINUX.AF_INET6, 0, port >> 8, port & 255])
  bytes.set(ipv6Bytes(ip), 8)
  return bytes
}

export function decodeSocketAddress(bytes: Uint8Array): { host: string; port: number } {
  const port = ((bytes[2] as number) << 8) | (bytes[3] as number)
  const host = bytes[0] === LINUX.AF_INET ? [...bytes.subarray(4, 8)].join('.') : ipv6Text(bytes, 8)
  return { host, port }
}

/** Eight groups in hex, not shortened; an IPv4-mapped address as IPv4. */
export function ipv6Text(bytes: Uint8Array, at: number): string {
  const isMapped =
    bytes.subarray(at, at + 10).every((byte) => byte === 0) && bytes[at + 10] === 255 && bytes[at + 11] === 255
  if (isMapped) return [...bytes.subarray(at + 12, at + 16)].join('.')
  const groups: string[] = []
  for (let i = at; i < at + 16; i += 2)
    groups.push((((bytes[i] as number) << 8) | (bytes[i + 1] as number)).toString(16))
  return groups.join(':')
}

function ipv6Bytes(ip: string): Uint8Array {
  const bytes = new Uint8Array(16)
  const [head = '', tail] = ip.split('::')
  bytes.set(groupBytes(head), 0)
  if (tail !== undefined) {
    const end = groupBytes(tail)
    bytes.set(end, 16 - end.length)
  }
  return bytes
}

function groupBytes(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 255]
  })
}
