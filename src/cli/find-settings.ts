import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ServiceError } from '../core/error.ts'
import { loadConfig } from '../platform/config/file.ts'
import { configSchema } from '../processes/compose/config/config.ts'
import { type Settings, settingsOf } from '../processes/compose/config/settings.ts'
import type { SettingsReport } from '../processes/compose/process/settings-report.ts'
import { openControlAt } from './control.ts'
import type { CliContext, CommonFlags } from './define.ts'
import { locate } from './locate.ts'

/** Where a command reads the configuration. */
export type SettingsSource = {
  readonly stateDir: string
  readonly configFile: string | undefined
  /** The environment of this command, over the one that the running process was configured with. */
  readonly env: NodeJS.ProcessEnv
  /** The running process whose configuration this is. */
  readonly running: SettingsReport | undefined
}

/** The configuration of the running process, if one runs on the state folder; else the one that a process started here would have. */
export async function findSettings(context: CliContext, flags: CommonFlags): Promise<Settings> {
  return settingsFrom(await findSettingsSource(context, flags))
}

export async function settingsFrom(source: SettingsSource): Promise<Settings> {
  const loaded = await loadConfig({ schema: configSchema, env: source.env, file: source.configFile })
  const settings = settingsOf(loaded, source.stateDir)
  if (source.running === undefined) return settings
  const { folder, endpoints, store = settings.config.access.store } = source.running
  const config = { ...settings.config, access: { ...settings.config.access, store } }
  return { ...settings, config, loaded: { ...loaded, folder }, endpoints }
}

export async function findSettingsSource(context: CliContext, flags: CommonFlags): Promise<SettingsSource> {
  const { env } = context.process
  const { stateDir, configFile, isConfigNamed } = locate(context, flags)
  const running = await askProcess(stateDir)
  const isOfProcess =
    running !== undefined &&
    (!isConfigNamed || (configFile !== undefined && running.config !== null && resolve(configFile) === running.config))
  if (!isOfProcess) return { stateDir, configFile, env, running: undefined }
  return { stateDir, configFile: running.config ?? undefined, env: { ...running.environment, ...env }, running }
}

const RESPONSE_MS_MAX = 3000

/** Undefined when no process runs there, or one of a version that does not report its configuration. */
async function askProcess(stateDir: string): Promise<SettingsReport | undefined> {
  if (!existsSync(join(stateDir, 'control.sock'))) return undefined
  try {
    using client = await openControlAt(stateDir, { responseMsMax: RESPONSE_MS_MAX })
    return await client.call('settings')
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
