import { isIP } from 'node:net'

export type HostAllowListOptions = {
  /** Where the listener listens. */
  readonly listenHost: string
  /** Further names, without port. */
  readonly hosts: readonly string[]
}

/**
 * Which values of the Host header belong to a listener that trusts its network. A page in a browser reaches such a listener by a name that resolves to
 * it (DNS rebinding), and then sends that name: so names are listed, and addresses, which nobody can point elsewhere, are not. A request without the
 * header comes from no browser.
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
