import { ServiceError } from '../../core/error.ts'
import { pingRedis } from '../../platform/db/redis.ts'
import type { Config } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok } from '../../processes/compose/config/finding.ts'

/** Back ends of the configuration. */
export async function checkServices(config: Config, folder: string, env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { shared } = config.access.quota
  if (shared === undefined) return []
  try {
    await pingRedis(shared, { env, folder })
    return [ok('redis', shared.url)]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [bad('redis', `${shared.url} does not respond: ${error.message}`, fixOf(error.message))]
  }
}

function fixOf(message: string): string {
  if (/WRONGPASS|NOAUTH/.test(message)) return 'correct the secret of access.quota.shared.password'
  return 'systemctl start redis-server   # or correct access.quota.shared.url'
}
