import assert from 'node:assert/strict'
import { credentialText } from '../platform/config/credential-text.ts'
import { createPinnedAddress, parseRemoteAddress } from '../platform/net/pinned-address.ts'
import { createAddressBackoff } from './address-backoff.ts'
import type { Endpoint, NodeDeps, NodeSpec } from './node.ts'
import type { UpstreamsOptions } from './options.ts'

type EndpointSpec = {
  readonly address: string | undefined
  readonly protocols: readonly string[]
  readonly headers: Endpoint['headers']
}

/** Undefined where the node has no such address. */
export function openEndpoint(
  { name, allowPrivate }: NodeSpec,
  { address, protocols, headers }: EndpointSpec,
  options: UpstreamsOptions,
  deps: NodeDeps,
): Endpoint | undefined {
  if (address === undefined) return undefined
  const remote = parseRemoteAddress(address, protocols, { mayHaveQuery: true })
  assert(remote !== undefined, `the address of node ${name} was checked before`)
  const pinned = createPinnedAddress(remote, { allowPrivate }, { lookup: deps.lookup, clock: deps.clock })
  const backoff = createAddressBackoff(options.breaker, deps)
  return { address: pinned, headers, backoff, refusals: createAddressBackoff(options.breaker, deps) }
}

export function credentialHeaders({ name, credential, credentialHeader }: NodeSpec): Readonly<Record<string, string>> {
  if (credential === undefined) return {}
  const text = credentialText(credential, `the credential of node ${name}`, { node: name })
  const isBare = credentialHeader === 'authorization' && !text.includes(' ')
  return { [credentialHeader]: isBare ? `Bearer ${text}` : text }
}
