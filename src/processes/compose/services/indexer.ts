import { join } from 'node:path'
import type { Access } from '../../../access/call-access.ts'
import type { SharedLimits } from '../../../gateway/limits.ts'
import { type Indexer, startIndexer } from '../../../indexer/service.ts'
import { resolveSecret, type SecretSources } from '../../../platform/config/secret-ref.ts'
import type { ChildWatcher } from '../../../platform/process/child.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import type { Upstreams } from '../../../upstreams/service.ts'
import { listenerOf } from '../config/listener.ts'
import { isTrial } from '../config/served.ts'
import { openHeldBytes } from '../process/memory.ts'
import type { ServiceContext, ServiceSettings } from '../process/service-context.ts'

export type IndexerPartDeps = ServiceContext<'indexer'> & {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly memory: Pick<MemoryGuard, 'mayAccept'>
  /** What is counted over all threads of the process; without it this thread is the only one. */
  readonly limits?: Pick<SharedLimits, 'held'> | undefined
  /** Of the control plane, where the indexer runs in a thread. */
  readonly children?: ChildWatcher
}

/**
 * The embedded chain has few transactions, but sysvars of 160 KB in each slot, whose rows take 45 MB a minute until a checkpoint. There are no customers whose
 * rows a more frequent checkpoint would delay. Its pages are released down to 4 MiB then, because 16 MiB is more than was written since the last one.
 */
const TRIAL_AT_REST = { logTextBytesMax: 8 * 1024 * 1024, idleBytesMax: 4 * 1024 * 1024 }

/** The indexer as its section of the configuration sets it up. It reads from the shared nodes and keeps its data in the state folder. */
export async function openIndexer({ config, loaded }: ServiceSettings, deps: IndexerPartDeps): Promise<Indexer> {
  const { publicUrl, enabled: _enabled, engine, clickhouse, ...options } = config.indexer
  const { access, upstreams, log, clock, random, registry, lifecycle, listenerMetrics, env } = deps
  return startIndexer(
    options,
    {
      listener: listenerOf(config.indexer, loaded.folder, deps.memory.mayAccept),
      dataFile: join(await deps.state.folder('indexer'), 'chain.duckdb'),
      atRest: isTrial(config) ? TRIAL_AT_REST : undefined,
      ...(engine === 'clickhouse' && clickhouse !== undefined
        ? await clickHouseOf(clickhouse, { env, folder: loaded.folder })
        : {}),
      displayName: publicUrl === undefined ? (config.host ?? '127.0.0.1') : new URL(publicUrl).hostname,
    },
    {
      access,
      upstream: upstreams.shared,
      log,
      clock,
      random,
      registry,
      lifecycle,
      heldBytes: openHeldBytes(config, deps, deps.limits?.held.bytes),
      refusals: deps.refusals,
      children: deps.children,
      listenerMetrics: listenerMetrics('indexer'),
    },
  )
}

/** The ClickHouse server of the operator, with the passwords of Sluice's accounts resolved. */
async function clickHouseOf(
  { accounts, ...clickhouse }: NonNullable<ServiceSettings['config']['indexer']['clickhouse']>,
  sources: SecretSources,
) {
  const read = async (reference: string): Promise<string> =>
    (await resolveSecret(reference, sources)).reveal().trimEnd()
  return {
    clickhouse: { ...clickhouse, password: await read(clickhouse.password) },
    accounts: accounts && { ...accounts, url: clickhouse.url, password: await read(accounts.password) },
  }
}
