import { hash } from 'node:crypto'
import { resolveAddress } from '../platform/config/address-ref.ts'
import { resolveSecret, type SecretSources } from '../platform/config/secret-ref.ts'
import { DEDICATED } from './metrics.ts'
import type { EndpointKind, NodeSpec } from './node.ts'
import type { DedicatedNodeOptions, UpstreamsOptions } from './options.ts'

export type SpecDeps = { readonly env: SecretSources['env']; readonly folder?: string | undefined }

/** The options of nodes that a reload may change. */
export type NodesOptions = Pick<UpstreamsOptions, 'nodes' | 'allowPrivate' | 'dedicatedCredentialHeader'>

/** A node of the configuration, with its secrets. */
export async function sharedSpec(
  node: UpstreamsOptions['nodes'][number],
  options: Pick<NodesOptions, 'allowPrivate'>,
  deps: SpecDeps,
): Promise<NodeSpec> {
  const { name, credential } = node
  return {
    name,
    label: name,
    ...(await resolveAddresses(node, deps)),
    weight: node.weight,
    allowPrivate: node.allowPrivate ?? options.allowPrivate,
    credentialHeader: node.credentialHeader,
    credential: credential === undefined ? undefined : await resolveSecret(credential, sourcesOf(deps)),
  }
}

/** The same for a dedicated node. */
export async function dedicatedSpec(
  node: Omit<DedicatedNodeOptions, 'subscriptionId'>,
  options: Omit<NodesOptions, 'nodes'>,
  deps: SpecDeps,
): Promise<NodeSpec> {
  const { name, credential } = node
  return {
    name,
    label: DEDICATED,
    ...(await resolveAddresses(node, deps)),
    weight: 1,
    allowPrivate: options.allowPrivate,
    credentialHeader: options.dedicatedCredentialHeader,
    credential: credential === null ? undefined : await resolveSecret(credential, sourcesOf(deps)),
  }
}

/** Equal for specs whose connections are interchangeable: everything but the weight. A digest, because it covers secrets. */
export function specKey({ name, rpc, ws, grpc, allowPrivate, credentialHeader, credential }: NodeSpec): string {
  const parts = [name, rpc, ws, grpc, allowPrivate, credentialHeader, credential?.reveal() ?? null]
  return hash('sha256', JSON.stringify(parts))
}

type Addresses = { readonly [Kind in EndpointKind]?: string | undefined }

const PROTOCOLS: Readonly<Record<EndpointKind, readonly string[]>> = {
  rpc: ['http:', 'https:'],
  ws: ['ws:', 'wss:'],
  grpc: ['http:', 'https:'],
}

async function resolveAddresses(
  { name, rpc, ws, grpc }: Addresses & { readonly name: string },
  deps: SpecDeps,
): Promise<Pick<NodeSpec, EndpointKind>> {
  const resolve = async (kind: EndpointKind, given: string | undefined) => {
    if (given === undefined || given === '') return undefined
    // A gRPC path is that of the method: a query would be lost.
    const mayHaveQuery = kind !== 'grpc'
    const what = `node ${name} for ${kind}`
    return resolveAddress({ what, given, protocols: PROTOCOLS[kind], mayHaveQuery }, sourcesOf(deps))
  }
  return { rpc: await resolve('rpc', rpc), ws: await resolve('ws', ws), grpc: await resolve('grpc', grpc) }
}

function sourcesOf({ env, folder }: SpecDeps): SecretSources {
  return folder === undefined ? { env } : { env, folder }
}
