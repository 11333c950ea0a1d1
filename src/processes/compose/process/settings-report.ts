import { readEnv } from '../../../platform/config/env.ts'
import type { Endpoints } from '../access/endpoints.ts'
import { type Config, type ConfigSection, configSchema } from '../config/config.ts'
import type { Settings } from '../config/settings.ts'
import { VERSION } from './version.ts'

/** The configuration of a running process, for commands that run in another folder or with another environment. Secrets are references in it. */
export type SettingsReport = {
  readonly pid: number
  readonly version: string
  readonly state: string
  /** Null without a config file. */
  readonly config: string | null
  /** The base of relative paths in the configuration. */
  readonly folder: string
  /** Variables that override values of the file. */
  readonly environment: Readonly<Record<string, string>>
  /** The store it uses, whatever the config file has become since its start. Missing from a process of an older version. */
  readonly store?: Config['access']['store']
  /** The sections that a process of one service uses, also where its own is off for `serve`. Missing from `serve`, whose sections the configuration names, and from an older version. */
  readonly parts?: readonly ConfigSection[]
  /** With the ports in use. */
  readonly endpoints: Endpoints
}

export function createSettingsReport(
  { config, stateDir, loaded }: Settings,
  env: NodeJS.ProcessEnv,
  endpoints: Endpoints,
  sections?: readonly ConfigSection[],
): () => SettingsReport {
  const { overrides } = readEnv(env, configSchema)
  const environment = Object.fromEntries(overrides.map(({ variable }) => [variable, env[variable] ?? '']))
  return () => ({
    pid: process.pid,
    version: VERSION,
    state: stateDir,
    config: loaded.file ?? null,
    folder: loaded.folder,
    environment,
    store: config.access.store,
    ...(sections && { parts: sections }),
    endpoints,
  })
}
