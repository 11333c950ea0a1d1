import { createIssuer } from '../../admin/oidc/issuer.ts'
import { ServiceError } from '../../core/error.ts'
import { pingRedis } from '../../platform/db/redis.ts'
import { systemClock } from '../../platform/process/clock.ts'
import type { Config } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok } from '../../processes/compose/config/finding.ts'

/** Back ends of the configuration. */
export async function checkServices(config: Config, folder: string, env: NodeJS.ProcessEnv): Promise<Finding[]> {
  return [...(await checkRedis(config, folder, env)), ...(await checkOidc(config))]
}

async function checkRedis(config: Config, folder: string, env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { shared } = config.access.quota
  if (shared === undefined) return []
  try {
    await pingRedis(shared, { env, folder }, systemClock)
    return [ok('redis', shared.url)]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [bad('redis', `${shared.url} does not respond: ${error.message}`, fixOf(error.message))]
  }
}

/** Whether people can sign in: discovery and the keys of the issuer. */
async function checkOidc({ admin: { enabled, oidc } }: Config): Promise<Finding[]> {
  if (!enabled || oidc === undefined) return []
  const issuer = createIssuer(oidc, { clock: systemClock, clientSecret: async () => undefined })
  try {
    await issuer.keys()
    return [ok('openid', `${oidc.issuer} has its discovery document and keys`)]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const fix = `curl ${oidc.issuer.replace(/\/$/, '')}/.well-known/openid-configuration   # then correct admin.oidc.issuer`
    return [bad('openid', `${oidc.issuer}: ${error.message}`, fix)]
  }
}

function fixOf(message: string): string {
  if (/WRONGPASS|NOAUTH/.test(message)) return 'correct the secret of access.quota.shared.password'
  return 'systemctl start redis-server   # or correct access.quota.shared.url'
}
