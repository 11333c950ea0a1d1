import { createIssuer } from '../../admin/oidc/issuer.ts'
import { messageOf, ServiceError } from '../../core/error.ts'
import { ClickHouseRefusal } from '../../indexer/clickhouse/link.ts'
import { pingClickHouse } from '../../indexer/clickhouse/ping.ts'
import { resolveSecret, type SecretSources } from '../../platform/config/secret-ref.ts'
import { pingRedis } from '../../platform/db/redis.ts'
import { systemClock } from '../../platform/process/clock.ts'
import type { Config, ConfigSection } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok } from '../../processes/compose/config/finding.ts'

/** Back ends of the configuration. */
export async function checkServices(
  config: Config,
  { sections, ...sources }: SecretSources & { readonly sections: readonly ConfigSection[] },
): Promise<Finding[]> {
  return [
    ...(await checkRedis(config, sources)),
    ...(sections.includes('indexer') ? await checkClickHouse(config, sources) : []),
    ...(await checkOidc(config)),
  ]
}

/** Whether the server accepts the accounts of the gateway. */
async function checkClickHouse({ indexer }: Config, sources: SecretSources): Promise<Finding[]> {
  const { engine, clickhouse } = indexer
  if (engine !== 'clickhouse' || clickhouse === undefined) return []
  const { url, accounts } = clickhouse
  const findings: Finding[] = []
  for (const { user, password } of accounts === undefined ? [clickhouse] : [clickhouse, accounts]) {
    try {
      await pingClickHouse({ url, user, password: (await resolveSecret(password, sources)).reveal().trimEnd() })
      findings.push(ok('clickhouse', `${url} as ${user}`))
    } catch (error) {
      // The check of secrets reports one that cannot be read.
      if (error instanceof ServiceError) continue
      const isRefused = error instanceof ClickHouseRefusal
      const fix = isRefused
        ? `correct the password of ${user} in indexer.clickhouse, or create the account`
        : 'systemctl start clickhouse-server   # or correct indexer.clickhouse.url'
      const what = isRefused ? `refuses ${user}` : 'does not respond'
      findings.push(bad('clickhouse', `${url} ${what}: ${messageOf(error).split('\n')[0]}`, fix))
    }
  }
  return findings
}

async function checkRedis(config: Config, sources: SecretSources): Promise<Finding[]> {
  const { shared } = config.access.quota
  if (shared === undefined) return []
  try {
    await pingRedis(shared, sources, systemClock)
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
