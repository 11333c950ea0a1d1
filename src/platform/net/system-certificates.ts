import { getCACertificates } from 'node:tls'

/**
 * The certificate authorities of the operating system and of `NODE_EXTRA_CA_CERTS`. Undefined, which stands for those that Node contains, on a system
 * without any.
 */
export function systemCertificates(): string[] | undefined {
  const system = getCACertificates('system')
  return system.length === 0 ? undefined : [...system, ...getCACertificates('extra')]
}
