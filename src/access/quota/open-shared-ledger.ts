import { resolveSecret, type SecretSources } from '../../platform/config/secret-ref.ts'
import { openRedis } from '../../platform/db/redis.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import type { Lifecycle } from '../../platform/process/lifecycle.ts'
import type { SharedQuotaOptions } from '../options.ts'
import { type SharedLedger, type SharedLedgerDeps, startSharedLedger } from './shared-ledger.ts'

export type OpenSharedLedgerDeps = BaseDeps &
  SecretSources &
  Omit<SharedLedgerDeps, 'redis' | 'onState'> & {
    readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  }

/** Connects to Redis and shares the quota through it with other processes. */
export async function openSharedLedger(options: SharedQuotaOptions, deps: OpenSharedLedgerDeps): Promise<SharedLedger> {
  const { clock, log, random, lifecycle } = deps
  const { url, keyPrefix, processesAssumed } = options
  const password = options.password === undefined ? undefined : await resolveSecret(options.password, deps)
  await using opening = new AsyncDisposableStack()
  const redis = opening.use(openRedis({ url, password }, { clock, log, random }))
  const processId = Buffer.from(random.bytes(8)).toString('hex')
  const ledger = opening.use(
    await startSharedLedger(
      { keyPrefix, processesAssumed, processId },
      {
        ...deps,
        redis,
        onState(isUp) {
          if (isUp) lifecycle.recovered('quota')
          else lifecycle.degraded('quota', 'redis is unreachable: each process uses its local share')
        },
      },
    ),
  )
  const opened = opening.move()
  return { ...ledger, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}
