import { ServiceError } from '../../core/service-error.ts'
import { systemClock } from '../../host/clock.ts'
import { silentLogger } from '../../host/logger.ts'
import { secureRandom } from '../../host/random.ts'
import { createRedisScript, openRedis } from '../../host/redis.ts'
import { resolveSecret } from '../../host/secret-ref.ts'
import type { Config } from '../config.ts'
import { bad, type Finding, ok } from './finding.ts'

const PING = createRedisScript("return 'PONG'")

/** Back ends this configuration leans on. */
export async function checkServices(config: Config, folder: string, env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { shared } = config.access.quota
  if (shared === undefined) return []
  try {
    const password = shared.password === undefined ? undefined : await resolveSecret(shared.password, { env, folder })
    await using link = openRedis(
      { url: shared.url, password },
      { clock: systemClock, log: silentLogger, random: secureRandom },
    )
    await link.tried
    const answer = await link.run(PING, [], [])
    if (answer.ok) return [ok('redis', shared.url)]
    return [bad('redis', `${shared.url} does not answer: ${answer.says}`, MEND)]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [bad('redis', `${shared.url} cannot be asked: ${error.message}`, error.fix ?? MEND)]
  }
}

const MEND = 'systemctl start redis-server   # or correct access.quota.shared.url'
