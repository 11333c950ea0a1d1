import { isIP } from 'node:net'

export type HostAllowListOptions = {
  readonly listenHost: string
  /** Further names, without port. */
  readonly hosts: readonly string[]
}

/**
 * Which Host headers a listener without authentication accepts. A web page can reach it by a name that resolves to it (DNS rebinding) and then sends
 * that name: so only listed names are accepted. Addresses cannot be rebound and are all accepted. Browsers always send the header.
 */
export function createHostAllowList({
  listenHost,
  hosts,
}: HostAllowListOptions): (host: string | undefined) => boolean {
  const names = new Set(['localhost', listenHost, ...hosts].map((name) => name.toLowerCase()))
  return (host) => {
    if (host === undefined) return true
    const name = host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
    return names.has(name) || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0
  }
}
