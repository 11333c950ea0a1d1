import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { createHttpClient } from '../../platform/http/client/client.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { baseDatabase } from '../clickhouse/ddl.ts'
import { createClickHouseLink } from '../clickhouse/link.ts'
import { type ClickHouseState, readClickHouseState } from '../clickhouse/state.ts'
import type { ClickHouseStoreOptions } from '../clickhouse/store.ts'
import type { IngestSupervisor } from './supervise.ts'

/** One for the question, one to ask whether the server is there. */
const CONNECTIONS_MAX = 2
const CONNECT_MS = 3_000
/** How old what an answer says about coverage may be. */
const LOOK_MS = 1_000

/** In place of an ingest of our own: looks how far another process has come. Nothing is written, so any number of these may stand before one server. */
export function followCoverage(
  options: ClickHouseStoreOptions,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): IngestSupervisor {
  const client = createHttpClient({ url: options.url, connectionsMax: CONNECTIONS_MAX, connectMs: CONNECT_MS })
  const link = createClickHouseLink(client, options)
  let seen: ClickHouseState | undefined
  let isReadable = false
  let isReported = false
  let isClosed = false
  let looking: Promise<void> | undefined

  async function look(): Promise<void> {
    try {
      seen = await readClickHouseState(link, baseDatabase(options.database))
      if (isReported) log.info('the database tells its coverage again')
      isReadable = true
      isReported = false
    } catch (error) {
      isReadable = false
      if (!isReported && !isClosed) log.warn({ reason: messageOf(error) }, 'the database does not tell its coverage')
      isReported = true
    } finally {
      looking = undefined
    }
  }

  const start = (): void => {
    looking ??= look()
  }
  start()
  const timer = clock.setRepeating(LOOK_MS, start)
  timer.unref?.()
  return {
    store: () => undefined,
    status: () => ({
      state: isClosed ? 'closed' : isReadable ? 'running' : 'opening',
      ingests: false,
      restarts: 0,
      storePid: undefined,
      ingest: seen && {
        headSlot: seen.ranges.at(-1)?.to,
        tipSlot: seen.tipSlot,
        held: 0,
        waitsFor: undefined,
        blocks: 0,
        transactions: 0,
      },
    }),
    async [Symbol.asyncDispose]() {
      isClosed = true
      timer.cancel()
      // Ends a question under way.
      client[Symbol.dispose]()
      await looking
    },
  }
}
