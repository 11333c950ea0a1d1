/** The content of a captured frame. */
export type FrameContent =
  | { readonly kind: 'udp'; readonly payload: Uint8Array; readonly fromPort: number; readonly toPort: number }
  /** Another protocol, an unknown link type, a fragment, or a truncated packet. */
  | { readonly kind: 'other'; readonly what: 'link' | 'protocol' | 'fragment' | 'cut' }

// Link types of captures (tcpdump.org/linktypes.html).
const LINK_NULL = 0
const LINK_ETHERNET = 1
const LINK_RAW_BSD = 12
const LINK_RAW_OPENBSD = 14
const LINK_RAW = 101
const LINK_LOOP = 108
const LINK_SLL = 113
const LINK_IPV4 = 228
const LINK_IPV6 = 229
const LINK_SLL2 = 276

const ETHERTYPE_IPV4 = 0x0800
const ETHERTYPE_IPV6 = 0x86dd
/** VLAN tags: 802.1Q, 802.1ad, and the older 0x9100 of stacked tags. */
const VLAN_TAGS: ReadonlySet<number> = new Set([0x8100, 0x88a8, 0x9100])
const VLAN_TAGS_MAX = 4

const PROTOCOL_UDP = 17
/** IPv6 extension headers: hop-by-hop, routing, destination options. */
const V6_EXTENSIONS: ReadonlySet<number> = new Set([0, 43, 60])
const V6_FRAGMENT = 44
const V6_EXTENSIONS_MAX = 8

/** Parses link and network headers and returns the UDP payload. Checks every length; never throws. */
export function readFrame(link: number, frame: Uint8Array): FrameContent {
  const at = (offset: number): number => frame[offset] ?? 0
  const u16 = (offset: number): number => (at(offset) << 8) | at(offset + 1)

  switch (link) {
    case LINK_ETHERNET: {
      let typeAt = 12
      for (let tags = 0; tags < VLAN_TAGS_MAX && VLAN_TAGS.has(u16(typeAt)); tags++) typeAt += 4
      return byEtherType(u16(typeAt), frame.subarray(typeAt + 2))
    }
    case LINK_SLL: {
      let typeAt = 14
      for (let tags = 0; tags < VLAN_TAGS_MAX && VLAN_TAGS.has(u16(typeAt)); tags++) typeAt += 4
      return byEtherType(u16(typeAt), frame.subarray(typeAt + 2))
    }
    case LINK_SLL2:
      return byEtherType(u16(0), frame.subarray(20))
    case LINK_NULL:
    case LINK_LOOP:
      return byVersion(frame.subarray(4))
    case LINK_RAW:
    case LINK_RAW_BSD:
    case LINK_RAW_OPENBSD:
    case LINK_IPV4:
    case LINK_IPV6:
      return byVersion(frame)
    default:
      return { kind: 'other', what: 'link' }
  }
}

function byEtherType(type: number, packet: Uint8Array): FrameContent {
  return type === ETHERTYPE_IPV4 || type === ETHERTYPE_IPV6 ? byVersion(packet) : { kind: 'other', what: 'protocol' }
}

function byVersion(packet: Uint8Array): FrameContent {
  const version = (packet[0] ?? 0) >> 4
  if (version === 4) return readV4(packet)
  return version === 6 ? readV6(packet) : { kind: 'other', what: 'protocol' }
}

function readV4(packet: Uint8Array): FrameContent {
  const headerBytes = ((packet[0] ?? 0) & 15) * 4
  if (headerBytes < 20 || packet.length < headerBytes) return { kind: 'other', what: 'cut' }
  if (packet[9] !== PROTOCOL_UDP) return { kind: 'other', what: 'protocol' }
  // The more-fragments flag or a fragment offset is set.
  if ((((packet[6] as number) << 8) | (packet[7] as number)) & 0x3fff) return { kind: 'other', what: 'fragment' }
  return readUdp(packet.subarray(headerBytes))
}

function readV6(packet: Uint8Array): FrameContent {
  if (packet.length < 40) return { kind: 'other', what: 'cut' }
  let next = packet[6] as number
  let at = 40
  for (let seen = 0; seen < V6_EXTENSIONS_MAX && V6_EXTENSIONS.has(next); seen++) {
    if (at + 8 > packet.length) return { kind: 'other', what: 'cut' }
    next = packet[at] as number
    at += ((packet[at + 1] as number) + 1) * 8
  }
  if (next === V6_FRAGMENT) return { kind: 'other', what: 'fragment' }
  return next === PROTOCOL_UDP ? readUdp(packet.subarray(at)) : { kind: 'other', what: 'protocol' }
}

function readUdp(segment: Uint8Array): FrameContent {
  if (segment.length < 8) return { kind: 'other', what: 'cut' }
  const u16 = (offset: number): number => ((segment[offset] as number) << 8) | (segment[offset + 1] as number)
  const length = u16(4)
  if (length < 8 || length > segment.length) return { kind: 'other', what: 'cut' }
  return { kind: 'udp', payload: segment.subarray(8, length), fromPort: u16(0), toPort: u16(2) }
}
