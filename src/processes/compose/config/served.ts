import type { NoticesOptions } from '../../../admin/notices/options.ts'
import type { LoadedConfig } from '../../../platform/config/file.ts'
import type { Config, ConfigSection } from './config.ts'

/**
 * Where the events of the execution service come from. Simulated data only where nothing real is configured, or on request; undefined: real nodes are
 * configured, but no source of events.
 */
export function executionSource({ execution, upstreams }: Config): 'ring' | 'evm-node' | 'simulated' | undefined {
  const { ring, node, simulated = upstreams.nodes.length === 0 } = execution
  if (node !== undefined) return 'evm-node'
  if (ring !== undefined) return 'ring'
  return simulated ? 'simulated' : undefined
}

/** Whether nothing real is configured, neither a node nor a source of events: at most the embedded chains run, whose rates need less memory. */
export function runsEmbeddedOnly({ execution, upstreams }: Config): boolean {
  return upstreams.nodes.length === 0 && execution.ring === undefined && execution.node === undefined
}

/** Keys of an installation: its names, nodes, sources, stores and receivers of its own, and listeners that others reach. */
const OF_INSTALLATION =
  /^(host|upstreams\.nodes|access\.(store|quota\.shared)|execution\.(ring|node)|shreds\.sources|sender\.(rpc|relays)|billing|notices|(.+\.)?(publicUrl|tls|plaintext))(\.|$)/
const ON_LOOPBACK = /^(127\.|localhost:|\[::1\]:)/

/**
 * Whether neither a file nor the environment sets up an installation. Only then is the start a trial whose customers are all on this machine: it has a
 * demo subscription, whose token is printed.
 */
export function isUnconfigured(loaded: LoadedConfig<Config>): boolean {
  if (loaded.file !== undefined) return false
  return loaded.entries().every(({ path, value, origin }) => {
    const isEmptyList = Array.isArray(value)
    if (origin.from === 'default' || isEmptyList) return true
    const isPublic = path.at(-1) === 'listen' && !ON_LOOPBACK.test(String(value))
    return !isPublic && !OF_INSTALLATION.test(path.join('.'))
  })
}

/** Why the execution service is off although it is enabled. */
export const EXECUTION_OFF = 'no source of events: set execution.ring, execution.node, or execution.simulated = true'

/** Whether `serve` runs the execution service. */
export function servesExecution(config: Config): boolean {
  return config.execution.enabled && executionSource(config) !== undefined
}

/** The sections that a process of one service uses, by its command. */
export const STANDALONE_SECTIONS = {
  gateway: ['metrics', 'access', 'bundle', 'upstreams'],
  sender: ['metrics', 'sender', 'upstreams'],
  shreds: ['metrics', 'access', 'shreds', 'upstreams'],
  execution: ['metrics', 'access', 'execution'],
  indexer: ['metrics', 'access', 'indexer', 'upstreams'],
} as const satisfies Record<string, readonly ConfigSection[]>

/** The sections that `serve` uses: all except disabled services. `enabled` has no effect on single-service processes. */
export function servedSections(config: Config): ConfigSection[] {
  return (Object.keys(config) as ConfigSection[]).filter((name) => {
    const section = config[name]
    if (name === 'execution') return servesExecution(config)
    return !(typeof section === 'object' && 'enabled' in section && section.enabled === false)
  })
}

/** Why ShredStream Decoded has nothing to deliver although a port or the product is on; undefined where it has, or is off. */
export function undecodedReason({ bundle, products }: Config, sections: readonly ConfigSection[]): string | undefined {
  const isOffered = products['shreds-decoded'].status === 'preview'
  if (!sections.includes('bundle') || !(isOffered || bundle.entries.enabled)) return undefined
  const names = [
    ...(bundle.entries.enabled ? ['bundle.entries'] : []),
    ...(isOffered ? ['products.shreds-decoded'] : []),
  ]
  const isOn = `${names.join(' and ')} ${names.length === 1 ? 'is' : 'are'} on`
  if (!sections.includes('shreds'))
    return `${isOn}, and this process has no shreds to decode: run sluice serve with shreds.enabled, or turn it off`
  return isOffered
    ? undefined
    : `${isOn}, and serves nothing: set products.shreds-decoded.status = "preview", or turn it off`
}

export function hasReceivers({ webhooks, command }: Pick<NoticesOptions, 'webhooks' | 'command'>): boolean {
  return webhooks.length > 0 || command !== undefined
}

/** The sections that are configured and that only `serve` runs. The admin API is on by default, so it counts where it has a value of the operator. */
export function onlyInServe({
  config,
  loaded,
}: {
  readonly config: Config
  readonly loaded: LoadedConfig<Config>
}): string[] {
  const isAdminSet = loaded.entries().some(({ path, origin }) => path[0] === 'admin' && origin.from !== 'default')
  return [
    ...(config.billing.sink === undefined ? [] : ['billing']),
    ...(hasReceivers(config.notices) ? ['notices'] : []),
    ...(config.admin.enabled && isAdminSet ? ['admin'] : []),
  ]
}
