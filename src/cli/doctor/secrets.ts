import { ServiceError } from '../../core/error.ts'
import type { LoadedConfig } from '../../platform/config/file.ts'
import { isSecretRef } from '../../platform/config/secret-ref.ts'
import type { Config } from '../../processes/compose/config/config.ts'
import { checkSecretRef } from '../../processes/compose/config/faults.ts'
import { bad, type Finding, ok } from '../../processes/compose/config/finding.ts'

/** The end of the finding about a variable that only the running process has. */
export const IN_PROCESS = 'in the environment of the running process'

/** Every secret reference of the config resolves, and its file is private. The environment of a running process is its own: it checked it when it started. */
export async function checkSecrets(
  loaded: LoadedConfig<Config>,
  env: NodeJS.ProcessEnv,
  { isRunning }: { readonly isRunning: boolean },
): Promise<Finding[]> {
  const references = loaded.entries().filter(({ value }) => typeof value === 'string' && isSecretRef(value))
  const findings: Finding[] = []
  for (const { path, value } of references) {
    const key = path.join('.')
    if (isRunning && (value as string).startsWith('env:') && env[(value as string).slice(4)] === undefined) {
      findings.push(ok('secret', `${key}: ${IN_PROCESS}`))
      continue
    }
    try {
      await checkSecretRef(key, value as string, { env, folder: loaded.folder })
      findings.push(ok('secret', key))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      findings.push(bad('secret', `${key}: ${error.message}`, error.fix ?? `correct ${key}`))
    }
  }
  return findings
}
