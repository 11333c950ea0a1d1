import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { openStore, type StoreLocation } from '../../../access/store/open.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import { resolveSecret } from '../../../platform/config/secret-ref.ts'
import { checkSecretFile, openStateFolder } from '../../../platform/files/state-folder.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import type { Settings } from '../config/settings.ts'
import { machineId } from '../process/machine-id.ts'
import { VERSION } from '../process/version.ts'

export type StoreSettings = Pick<Settings, 'config' | 'loaded' | 'stateDir'>

/** Opens the configured store. `full` reads it completely first and refuses a damaged one; without `create` a missing or older one is an error. */
export async function openAccessStore(
  settings: StoreSettings,
  how: { env: NodeJS.ProcessEnv; check: 'full' | 'quick'; create?: boolean; log?: Logger },
): Promise<AccessStore> {
  const state = await openStateFolder(settings.stateDir)
  const { env, check, create = true, log = silentLogger } = how
  const location = await storeLocationOf(settings, env)
  for (const file of [...(location.engine === 'sqlite' ? [location.file] : []), state.file('audit.log')])
    if (existsSync(file)) await checkSecretFile(file)
  return openStore(
    {
      location,
      check,
      create,
      audit: { file: state.file('audit.log'), mirror: await machineId(state), toolVersion: VERSION },
    },
    { clock: systemClock, random: secureRandom, log },
  )
}

/** The location of the configured store, with its password resolved. */
export async function storeLocationOf(
  { config, loaded, stateDir }: StoreSettings,
  env: NodeJS.ProcessEnv,
): Promise<StoreLocation> {
  const { store } = config.access
  if (store.engine === 'sqlite') return { engine: 'sqlite', file: sqliteStoreFile(stateDir, store.file) }
  const password = store.password && (await resolveSecret(store.password, { env, folder: loaded.folder })).reveal()
  return { engine: 'postgres', url: store.url, password }
}

/** `access.store.file`: an absolute path, or one in the state folder. */
export function sqliteStoreFile(stateDir: string, file: string): string {
  return resolve(stateDir, file)
}
