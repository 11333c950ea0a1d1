import { ServiceError } from '../../core/service-error.ts'
import { pingRedis } from '../../host/redis.ts'
import type { Config } from '../config.ts'
import { bad, type Finding, ok } from './finding.ts'

/** Back ends this configuration leans on. */
export async function checkServices(config: Config, folder: string, env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { shared } = config.access.quota
  if (shared === undefined) return []
  try {
    await pingRedis(shared, { env, folder })
    return [ok('redis', shared.url)]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [bad('redis', `${shared.url} does not answer: ${error.message}`, mendOf(error.message))]
  }
}

function mendOf(message: string): string {
  if (/WRONGPASS|NOAUTH/.test(message)) return 'correct the secret that access.quota.shared.password names'
  return 'systemctl start redis-server   # or correct access.quota.shared.url'
}
