import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'

const QUERY_OUTCOMES = ['ok', 'refused', 'failed', 'timeout', 'too-large', 'busy', 'cancelled', 'unavailable'] as const
export type QueryOutcome = (typeof QUERY_OUTCOMES)[number]

const BATCH_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const QUERY_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

type Count = { inc(by?: number): void }
type Setting = { set(value: number): void }

/** What the indexer tells Prometheus. */
export type IndexerMetrics = {
  wrote(blocks: number, seconds: number, headSlot: number): void
  readonly tipSlot: Setting
  readonly held: Setting
  readonly gaps: Count
  readonly faults: Count
  readonly rewinds: Count
  readonly retries: Count
  readonly streamLosses: Count
  readonly storeRestarts: Count
  readonly queryKills: Count
  query(outcome: QueryOutcome, seconds: number): void
  readonly queryRows: Count
  readonly queryBytes: Count
  readonly running: Setting
}

export function indexerMetrics(registry: MetricsRegistry): IndexerMetrics {
  const count = (name: string, help: string): Count => registry.counter({ name, help }).with({})
  const setting = (name: string, help: string): Setting => registry.gauge({ name, help }).with({})
  const blocks = count('sluice_indexer_blocks_total', 'Blocks written to the store.')
  const headSlot = setting(
    'sluice_indexer_head_slot',
    'Last slot of the stretch without a gap that ends nearest the tip.',
  )
  const batchSeconds = registry
    .histogram({
      name: 'sluice_indexer_batch_seconds',
      help: 'Time to write one batch of blocks, with the transaction that makes it complete.',
      buckets: BATCH_BUCKETS,
    })
    .with({})
  const queries = registry.counter({
    name: 'sluice_indexer_queries_total',
    help: 'Queries of customers, by what became of them.',
    labels: { outcome: QUERY_OUTCOMES },
  })
  const querySeconds = registry
    .histogram({
      name: 'sluice_indexer_query_seconds',
      help: 'From the query to its whole answer.',
      buckets: QUERY_BUCKETS,
    })
    .with({})
  return {
    wrote(count, seconds, slot) {
      blocks.inc(count)
      batchSeconds.observe(seconds)
      headSlot.set(slot)
    },
    tipSlot: setting('sluice_indexer_tip_slot', 'Newest confirmed slot the node has told of.'),
    held: setting('sluice_indexer_held_blocks', 'Blocks that wait for one before them.'),
    gaps: count('sluice_indexer_gaps_total', 'Gaps in the stream that were asked for with getBlock.'),
    faults: count('sluice_indexer_block_faults_total', 'Blocks that could not be read as they came.'),
    rewinds: count('sluice_indexer_rewinds_total', 'Times the chain went another way and blocks were written anew.'),
    retries: count('sluice_indexer_write_retries_total', 'Batches that were written at a second try or later.'),
    streamLosses: count('sluice_indexer_stream_losses_total', 'Times the block stream was lost.'),
    storeRestarts: count('sluice_indexer_store_restarts_total', 'Times the database process was started again.'),
    queryKills: count(
      'sluice_indexer_query_kills_total',
      'Times a query could not be stopped but by ending its process.',
    ),
    query(outcome, seconds) {
      queries.with({ outcome }).inc()
      querySeconds.observe(seconds)
    },
    queryRows: count('sluice_indexer_query_rows_total', 'Rows sent to customers.'),
    queryBytes: count('sluice_indexer_query_bytes_total', 'Bytes sent to customers, before compression.'),
    running: setting('sluice_indexer_running_queries', 'Queries running now.'),
  }
}
