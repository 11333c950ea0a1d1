/** UDP ports of services that amplify or act on any packet, such as SSDP, mDNS, CoAP and memcached. Nothing is sent to them. */
export const REFLECTOR_PORTS: ReadonlySet<number> = new Set([
  1434, 1900, 3283, 3702, 5353, 5683, 10_001, 11_211, 37_810,
])
