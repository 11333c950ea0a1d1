import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { openStore, type StoreCheck, type StoreLocation } from '../../../access/store/open.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import { ServiceError } from '../../../core/error.ts'
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

/** Opens the configured store. With a check other than `quick` it is read first and refused if it is damaged; without `create` a missing or older one is an error. */
export async function openAccessStore(
  settings: StoreSettings,
  how: { env: NodeJS.ProcessEnv; check: StoreCheck; create?: boolean; log?: Logger },
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

/**
 * A single service has no customers of its own: in a state folder without a store it would make an empty one and refuse everybody. PostgreSQL is
 * shared, so it is the store of the other processes.
 */
export function assertStoreExists({ config, stateDir }: StoreSettings, command: string): void {
  const { store } = config.access
  if (store.engine !== 'sqlite') return
  const file = sqliteStoreFile(stateDir, store.file)
  if (existsSync(file)) return
  throw new ServiceError('config-invalid', `${command} serves the customers of a store, and ${file} does not exist`, {
    fix: 'Set access.store to PostgreSQL for all processes, or access.store.file to a file that all of them may write. To begin with a new one: sluice customer add NAME --create-store, with the same --config and --state.',
  })
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
