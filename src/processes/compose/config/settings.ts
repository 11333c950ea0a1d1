import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { createPlanTable, type PlanTable } from '../../../access/plan.ts'
import { type LoadedConfig, loadConfig } from '../../../platform/config/file.ts'
import { type Endpoints, endpointsOf } from '../access/endpoints.ts'
import { type Config, configSchema } from './config.ts'

/** Sources of the settings: flags of the command line, and the environment. */
type SettingsFlags = { readonly config?: string; readonly state?: string }
type SettingsContext = { readonly process: Pick<NodeJS.Process, 'env'> }

/** The configuration from flags, environment and config file. */
export type Settings = {
  readonly config: Config
  readonly loaded: LoadedConfig<Config>
  readonly stateDir: string
  readonly plans: PlanTable
  readonly endpoints: Endpoints
}

export async function loadSettings(context: SettingsContext, flags: SettingsFlags): Promise<Settings> {
  const { env } = context.process
  const loaded = await loadConfig({ schema: configSchema, env, file: configFileOf(flags) })
  return settingsOf(loaded, stateDirOf(context, flags))
}

export function settingsOf(loaded: LoadedConfig<Config>, stateDir: string): Settings {
  const config = loaded.value
  return { config, loaded, stateDir, plans: createPlanTable(config.plans), endpoints: endpointsOf(config) }
}

export const DEFAULT_CONFIG = 'sluice.toml'
const DEFAULT_STATE = '.sluice'

/** `--config`, which must exist, or `./sluice.toml` if it exists. */
export function configFileOf(flags: SettingsFlags): string | undefined {
  if (flags.config !== undefined) return flags.config
  return existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : undefined
}

export function stateDirOf(context: SettingsContext, flags: SettingsFlags): string {
  return resolve(flags.state ?? context.process.env['SLUICE_STATE'] ?? DEFAULT_STATE)
}
