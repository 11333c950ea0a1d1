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

/** The settings of a process that starts here. Commands about a running process ask it (`cli/find-settings.ts`). */
export async function loadSettings(context: SettingsContext, flags: SettingsFlags): Promise<Settings> {
  const { env } = context.process
  const loaded = await loadConfig({ schema: configSchema, env, file: configFileOf(context, flags) })
  return settingsOf(loaded, namedStateOf(context, flags) ?? stateOf(loaded))
}

export function settingsOf(loaded: LoadedConfig<Config>, stateDir: string): Settings {
  const config = loaded.value
  return { config, loaded, stateDir, plans: createPlanTable(config.plans), endpoints: endpointsOf(config) }
}

export const DEFAULT_CONFIG = 'sluice.toml'
/** The config file of a server: docs/packaging.md. */
export const SYSTEM_CONFIG = '/etc/sluice/sluice.toml'
const DEFAULT_STATE = '.sluice'

/** `--config` or `SLUICE_CONFIG`, which must exist; else `./sluice.toml`, else `/etc/sluice/sluice.toml`, if it exists. */
function configFileOf(context: SettingsContext, flags: SettingsFlags): string | undefined {
  return namedConfigOf(context, flags) ?? [DEFAULT_CONFIG, SYSTEM_CONFIG].find((file) => existsSync(file))
}

/** The config file that a flag or the environment names. */
export function namedConfigOf({ process: { env } }: SettingsContext, flags: SettingsFlags): string | undefined {
  return flags.config ?? (env['SLUICE_CONFIG'] || undefined)
}

/** The state folder that a flag or the environment names. */
export function namedStateOf({ process: { env } }: SettingsContext, flags: SettingsFlags): string | undefined {
  const named = flags.state ?? (env['SLUICE_STATE'] || undefined)
  return named === undefined ? undefined : resolve(named)
}

/** The state folder of a configuration: its `state`, relative to the file, else `./.sluice`. */
function stateOf({ value, folder }: LoadedConfig<Config>): string {
  return value.state === undefined ? defaultState() : resolve(folder, value.state)
}

export function defaultState(): string {
  return resolve(DEFAULT_STATE)
}
