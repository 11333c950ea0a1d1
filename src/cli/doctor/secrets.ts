import { ServiceError } from '../../core/error.ts'
import type { ConfigSection } from '../../processes/compose/config/config.ts'
import { checkSecretRef, secretRefsOf } from '../../processes/compose/config/faults.ts'
import { bad, type Finding, ok } from '../../processes/compose/config/finding.ts'
import type { Settings } from '../../processes/compose/config/settings.ts'
import type { SettingsSource } from '../find-settings.ts'

/** The end of the finding about a variable that only the running process may have. */
export const IN_PROCESS = 'only in the environment of the process, which cannot be seen here'

type ToCheck = Pick<Settings, 'config' | 'loaded'> & { readonly sections: readonly ConfigSection[] }

/**
 * Every secret that the process reads can be read, and its file is private: those of sections that it does not use may belong to another user. The
 * environment of a running process is its own: what it has read it checked when it started.
 */
export async function checkSecrets(
  { config, loaded, sections }: ToCheck,
  { env, running }: Pick<SettingsSource, 'env' | 'running'>,
): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const [key, reference] of secretRefsOf({ config, loaded }, sections)) {
    if (running !== undefined && reference.startsWith('env:') && env[reference.slice(4)] === undefined) {
      findings.push(ok('secret', `${key}: ${IN_PROCESS}`))
      continue
    }
    try {
      await checkSecretRef(key, reference, { env, folder: loaded.folder })
      findings.push(ok('secret', key))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      findings.push(bad('secret', `${key}: ${error.message}`, error.fix ?? `correct ${key}`))
    }
  }
  return findings
}
