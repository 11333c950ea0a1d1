/** The parsed address of a listener option. */
export function listenAddress(option: {
  listen: string
  tls?: { cert: string; key: string } | undefined
  plaintext?: 'behind-proxy' | undefined
  addressConnectionsMax?: number | undefined
  addressConnectionsPerSecond?: number | undefined
}) {
  const colon = option.listen.lastIndexOf(':')
  return {
    host: option.listen.slice(0, colon).replace(/^\[|\]$/g, ''),
    port: portOf(option.listen),
    tls: option.tls,
    plaintext: option.plaintext,
    addressConnectionsMax: option.addressConnectionsMax,
    addressConnectionsPerSecond: option.addressConnectionsPerSecond,
  }
}

export function portOf(listen: string): number {
  return Number(listen.slice(listen.lastIndexOf(':') + 1))
}
