import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { createHttpClient } from '../../platform/http/client/client.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { baseDatabase } from '../clickhouse/ddl.ts'
import { createClickHouseLink } from '../clickhouse/link.ts'
import { type ClickHouseState, readClickHouseState } from '../clickhouse/state.ts'
import type { ClickHouseStoreOptions } from '../clickhouse/store.ts'
import { chainTip } from './ingest.ts'
import type { IngestSupervisor } from './supervise.ts'

type NodeSlots = Parameters<typeof chainTip>[0]

/** One for the query, one for pings. */
const CONNECTIONS_MAX = 2
const CONNECT_MS = 3_000
/** Longest age of the coverage that responses state. */
const POLL_MS = 1_000

/** Replaces ingest in a process that does not write: polls the progress of the writer. Any number of such processes may use one server. */
export function followCoverage(
  options: ClickHouseStoreOptions,
  { clock, log, upstream }: { readonly clock: Clock; readonly log: Logger; readonly upstream: NodeSlots },
): IngestSupervisor {
  const client = createHttpClient({ url: options.url, connectionsMax: CONNECTIONS_MAX, connectMs: CONNECT_MS })
  const link = createClickHouseLink(client, options)
  let seen: ClickHouseState | undefined
  let isReadable = false
  let isReported = false
  let isClosed = false
  let polling: Promise<void> | undefined

  async function poll(): Promise<void> {
    try {
      seen = await readClickHouseState(link, baseDatabase(options.database))
      if (isReported) log.info('the coverage of the database can be read again')
      isReadable = true
      isReported = false
    } catch (error) {
      isReadable = false
      if (!isReported && !isClosed)
        log.warn({ reason: messageOf(error) }, 'the coverage of the database cannot be read')
      isReported = true
    } finally {
      polling = undefined
    }
  }

  const start = (): void => {
    polling ??= poll()
  }
  start()
  const timer = clock.setRepeating(POLL_MS, start)
  timer.unref?.()
  return {
    store: () => undefined,
    status: () => ({
      state: isClosed ? 'closed' : isReadable ? 'running' : 'opening',
      ingests: false,
      restarts: 0,
      storePid: undefined,
      stopped: undefined,
      ingest: seen && {
        headSlot: seen.ranges.at(-1)?.to,
        // The writer's own figure stands still when the writer does.
        tipSlot: chainTip(upstream),
        held: 0,
        waitsFor: undefined,
        blocks: 0,
        transactions: 0,
      },
    }),
    async [Symbol.asyncDispose]() {
      isClosed = true
      timer.cancel()
      // Ends a query in progress.
      client[Symbol.dispose]()
      await polling
    },
  }
}
