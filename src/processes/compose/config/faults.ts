import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { ServiceError } from '../../../core/error.ts'
import { credentialText } from '../../../platform/config/credential-text.ts'
import { isSecretRef, resolveSecret, type SecretSources } from '../../../platform/config/secret-ref.ts'
import { checkListener } from '../../../platform/net/listener.ts'
import { findShared, listenersOf } from './check-listeners.ts'
import type { Config, ConfigSection } from './config.ts'
import { bad, type Finding } from './finding.ts'
import { listenerOf } from './listener.ts'
import { servedSections } from './served.ts'
import type { Settings } from './settings.ts'

/**
 * Throws with all faults of the configuration that would prevent the start, before a port is open. Sections that this process does not use are not
 * checked: their secrets may belong to another user.
 */
export async function assertValidConfig(
  { config, loaded }: Pick<Settings, 'config' | 'loaded'>,
  { env, sections }: { env: NodeJS.ProcessEnv; sections: readonly ConfigSection[] },
): Promise<void> {
  const faults: ServiceError[] = []
  const note = async (key: string, check: () => Promise<unknown>): Promise<void> => {
    try {
      await check()
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      faults.push(new ServiceError(error.code, `${key}: ${error.message}`, { fix: error.fix ?? `Correct ${key}.` }))
    }
  }

  for (const [key, reference] of secretRefsOf({ config, loaded }, sections))
    await note(key, () => checkSecretRef(key, reference, { env, folder: loaded.folder }))
  const servers = listenersOf(config, sections)
  for (const { name, option } of servers) await note(name, () => checkListener(listenerOf(option, loaded.folder)))
  faults.push(
    ...[
      ...findShared(servers),
      ...checkSources(config, sections),
      ...checkIdentity(config, loaded.folder, sections),
    ].map(errorOf),
  )

  const [only] = faults
  if (only !== undefined && faults.length === 1) throw only
  if (faults.length > 1) {
    throw new ServiceError(
      'config-invalid',
      `${faults.length} faults\n${lines(faults.map(({ message }) => message))}`,
      {
        fix: `Correct all of them:\n${lines(faults.map(({ fix = '' }) => fix))}`,
      },
    )
  }
}

/** The references to secrets in these sections, by key. */
export function secretRefsOf(
  { config, loaded }: Pick<Settings, 'config' | 'loaded'>,
  sections: readonly ConfigSection[],
): Map<string, string> {
  const refs = new Map<string, string>()
  for (const { path, value } of loaded.entries())
    if (typeof value === 'string' && isSecretRef(value) && isUsed(path, sections, config))
      refs.set(path.join('.'), value)
  return refs
}

/** Credentials of nodes, and of relays and further nodes of the sender. */
const SENT_IN_HEADER = /^(upstreams\.nodes|sender\.(rpc|relays))\.\d+\.credential$/

/** Reads a secret as the start does. */
export async function checkSecretRef(key: string, reference: string, sources: SecretSources): Promise<void> {
  const secret = await resolveSecret(reference, sources)
  if (SENT_IN_HEADER.test(key)) credentialText(secret, 'the credential')
}

function isUsed(
  [section, key]: readonly (string | number)[],
  sections: readonly ConfigSection[],
  { indexer }: Config,
): boolean {
  if (!sections.includes(section as ConfigSection)) return false
  return !(section === 'indexer' && key === 'clickhouse' && indexer.engine !== 'clickhouse')
}

/** There is one source of events. */
export function checkSources(config: Config, sections: readonly ConfigSection[] = servedSections(config)): Finding[] {
  const { ring, node, simulated } = config.execution
  const given = Object.entries({ ring, node, simulated: simulated === true ? true : undefined })
  const names = given.flatMap(([name, value]) => (value === undefined ? [] : [`execution.${name}`]))
  if (!sections.includes('execution') || names.length <= 1) return []
  const message = `execution: ${names.join(' and ')} are set, but there is one source of events`
  const fix = 'Set only one of them. A ring has execution durations, a node has none, simulated data is made up.'
  return [bad('execution', message, fix)]
}

/** A configured key of the sender exists. */
export function checkIdentity(
  config: Config,
  folder: string,
  sections: readonly ConfigSection[] = servedSections(config),
): Finding[] {
  const { enabled, identity } = config.sender.quic
  const isUsed = sections.includes('sender') && enabled && identity !== undefined
  if (!isUsed || existsSync(resolve(folder, identity))) return []
  const fix = 'Give a keypair file of solana-keygen, ending in .json, with mode 0600.'
  return [bad('sender identity', `sender.quic.identity: the file ${identity} does not exist`, fix)]
}

function errorOf(finding: Finding): ServiceError {
  return new ServiceError('config-invalid', finding.message, 'fix' in finding ? { fix: finding.fix } : {})
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `  - ${text}`).join('\n')
}
