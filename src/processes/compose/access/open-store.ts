import { existsSync } from 'node:fs'
import { join } from 'node:path'
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

/** Opens the configured store. `full` reads it completely first and refuses a damaged one. */
export async function openAccessStore(
  settings: StoreSettings,
  how: { env: NodeJS.ProcessEnv; check: 'full' | 'quick'; log?: Logger },
): Promise<AccessStore> {
  const state = await openStateFolder(settings.stateDir)
  const { env, check, log = silentLogger } = how
  for (const file of ['access.db', 'audit.log'])
    if (existsSync(state.file(file))) await checkSecretFile(state.file(file))
  return openStore(
    {
      location: await storeLocationOf(settings, env),
      check,
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
  if (store.engine === 'sqlite') return { engine: 'sqlite', file: join(stateDir, store.file) }
  const password = store.password && (await resolveSecret(store.password, { env, folder: loaded.folder })).reveal()
  return { engine: 'postgres', url: store.url, password }
}
