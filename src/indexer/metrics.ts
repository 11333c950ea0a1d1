import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'

const QUERY_OUTCOMES = ['ok', 'refused', 'failed', 'timeout', 'too-large', 'busy', 'cancelled', 'unavailable'] as const
export type QueryOutcome = (typeof QUERY_OUTCOMES)[number]

const BATCH_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const QUERY_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Why nothing is written. `database`: it ends or refuses batches again and again. */
export type IngestStopReason = 'disk-full' | 'database' | 'other-chain'

/** Values read at each scrape. */
export type IndexerReadings = {
  headSlot(): number | undefined
  tipSlot(): number | undefined
  stopped(): IngestStopReason | undefined
}

const NO_READINGS: IndexerReadings = { headSlot: () => undefined, tipSlot: () => undefined, stopped: () => undefined }

type Count = { inc(by?: number): void }
type Gauge = { set(value: number): void }

/** Prometheus metrics of the indexer. */
export type IndexerMetrics = {
  wrote(blocks: number, seconds: number): void
  readonly held: Gauge
  readonly gaps: Count
  readonly missingSlots: Count
  readonly faults: Count
  readonly rewinds: Count
  readonly replaced: Count
  readonly retries: Count
  readonly streamLosses: Count
  readonly storeRestarts: Count
  readonly queryKills: Count
  query(outcome: QueryOutcome, seconds: number): void
  readonly queryRows: Count
  readonly queryBytes: Count
  readonly running: Gauge
}

export function indexerMetrics(registry: MetricsRegistry, read: IndexerReadings = NO_READINGS): IndexerMetrics {
  const count = (name: string, help: string): Count => registry.counter(name, help).with({})
  const gauge = (name: string, help: string): Gauge => registry.gauge(name, help).with({})
  const blocks = count('sluice_indexer_blocks_total', 'Blocks written to the store.')
  registry.gauge(
    'sluice_indexer_head_slot',
    'Last slot of the newest range without a gap in the tables; 0 while there is none.',
    { read: () => read.headSlot() ?? 0, merge: 'max' },
  )
  registry.gauge(
    'sluice_indexer_tip_slot',
    'Newest slot of the chain that any node reports; NaN while no node reports one.',
    { read: () => read.tipSlot() ?? Number.NaN, merge: 'max' },
  )
  registry.gauge(
    'sluice_indexer_stopped',
    '1 while the indexer writes nothing: its disk is full, its database fails again and again, or the nodes are of another chain than its tables.',
    { read: () => (read.stopped() === undefined ? 0 : 1), merge: 'max' },
  )
  const batchSeconds = registry
    .histogram('sluice_indexer_batch_seconds', 'Time to write one batch of blocks, including the transaction.', {
      buckets: BATCH_BUCKETS,
    })
    .with({})
  const queries = registry.counter('sluice_indexer_queries_total', 'Queries of customers, by outcome.', {
    labels: { outcome: QUERY_OUTCOMES },
  })
  const querySeconds = registry
    .histogram('sluice_indexer_query_seconds', 'Time from the query to its complete result.', {
      buckets: QUERY_BUCKETS,
    })
    .with({})
  return {
    wrote(count, seconds) {
      blocks.inc(count)
      batchSeconds.observe(seconds)
    },
    held: gauge('sluice_indexer_held_blocks', 'Blocks that wait for an earlier block.'),
    gaps: count('sluice_indexer_gaps_total', 'Gaps in the stream that were filled with getBlock.'),
    missingSlots: count(
      'sluice_indexer_missing_slots_total',
      'Slots that the tables lack because no node has their blocks any more; `coverage` lists them.',
    ),
    faults: count('sluice_indexer_block_faults_total', 'Blocks that could not be decoded.'),
    rewinds: count('sluice_indexer_rewinds_total', 'Forks after which blocks were deleted and written again.'),
    replaced: count(
      'sluice_indexer_replaced_blocks_total',
      'Written blocks that were not of the chain that became final, and were deleted in the same write as the blocks in their place.',
    ),
    retries: count('sluice_indexer_write_retries_total', 'Writes of a batch that were tried again.'),
    streamLosses: count('sluice_indexer_stream_losses_total', 'Disconnections of the block stream.'),
    storeRestarts: count('sluice_indexer_store_restarts_total', 'Restarts of the database process.'),
    queryKills: count(
      'sluice_indexer_query_kills_total',
      'Ends of the database process for a query that could not be stopped otherwise.',
    ),
    query(outcome, seconds) {
      queries.with({ outcome }).inc()
      querySeconds.observe(seconds)
    },
    queryRows: count('sluice_indexer_query_rows_total', 'Rows sent to customers.'),
    queryBytes: count('sluice_indexer_query_bytes_total', 'Bytes sent to customers, before compression.'),
    running: gauge('sluice_indexer_running_queries', 'Queries running now.'),
  }
}
