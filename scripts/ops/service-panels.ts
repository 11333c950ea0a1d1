import { counted, gauge, type Panel, quantiles, rate, worst } from './board.ts'

export const SENDER_PANELS: readonly Panel[] = [
  {
    title: 'Received',
    how: 'Transactions a second by what became of them at the door.',
    unit: 'reqps',
    queries: [rate('sluice_sender_received_total', 'result')],
  },
  {
    title: 'Finished',
    how: 'Accepted transactions that came to an end, by how.',
    unit: 'reqps',
    queries: [rate('sluice_sender_finished_total', 'state')],
  },
  {
    title: 'Time to land',
    how: 'From accepting a transaction to seeing it in a block, for each path that had taken it.',
    unit: 's',
    queries: quantiles('sluice_sender_time_to_land_seconds', 'path'),
  },
  {
    title: 'Time to the paths',
    how: 'From the end of a request to handing its transaction to the paths, and to the first answer of each path.',
    unit: 's',
    queries: [
      ...quantiles('sluice_sender_first_dispatch_seconds'),
      ...quantiles('sluice_sender_first_answer_seconds', 'path'),
    ],
  },
  {
    title: 'Attempts',
    how: 'Times a transaction was sent on a path, by the answer.',
    unit: 'reqps',
    queries: [rate('sluice_sender_attempts_total', 'path, response')],
  },
  {
    title: 'On their way',
    how: 'Transactions on their way, receipts kept, and open connections to leaders.',
    unit: 'short',
    queries: [gauge('sluice_sender_pending'), gauge('sluice_sender_receipts'), gauge('sluice_sender_quic_connections')],
  },
  {
    title: 'Refused by a limit',
    how: 'Requests refused a second, by limit.',
    unit: 'reqps',
    queries: [rate('sluice_sender_limited_total', 'limit')],
  },
  {
    title: 'Tips',
    how: 'Lamports of transactions that landed and succeeded, a second.',
    unit: 'short',
    queries: [rate('sluice_sender_tip_lamports_total')],
  },
  {
    title: 'Journal failures',
    how: 'Writes to the journal of accepted transactions that failed, in the time shown.',
    unit: 'short',
    queries: [counted('sluice_sender_journal_failures_total')],
  },
]

export const SHREDS_PANELS: readonly Panel[] = [
  {
    title: 'In and out',
    how: 'Packets a second taken from allowed sources, relayed once each, and sent to all destinations together.',
    unit: 'short',
    queries: [
      rate('sluice_shreds_received_total', 'source'),
      rate('sluice_shreds_relayed_total'),
      rate('sluice_shreds_sent_total'),
    ],
  },
  {
    title: 'Bytes out',
    how: 'Bytes of shreds a second, by seat of the destination.',
    unit: 'Bps',
    queries: [rate('sluice_shreds_sent_bytes_total', 'destination')],
  },
  {
    title: 'Not relayed',
    how: 'Packets dropped a second by reason, and those relayed without a signature check.',
    unit: 'short',
    queries: [rate('sluice_shreds_dropped_total', 'reason'), rate('sluice_shreds_unchecked_total')],
  },
  {
    title: 'Not sent',
    how: 'Relayed packets that did not go to a destination, by reason and by seat.',
    unit: 'short',
    queries: [rate('sluice_shreds_unsent_total', 'reason'), rate('sluice_shreds_unsent_by_seat_total', 'destination')],
  },
  {
    title: 'Destinations',
    how: 'By state, those that get nothing, and how often nobody listened there.',
    unit: 'short',
    queries: [
      gauge('sluice_shreds_destinations', 'state'),
      gauge('sluice_shreds_destinations_refused'),
      counted('sluice_shreds_refusals_total'),
      counted('sluice_shreds_challenges_total'),
    ],
  },
  {
    title: 'Alarms',
    how: 'One while an alarm is raised, and how often it was in the time shown.',
    unit: 'short',
    queries: [worst('sluice_shreds_alarm', 'alarm'), counted('sluice_shreds_alarms_total', 'alarm')],
  },
  {
    title: 'Receive buffer',
    how: 'What the kernel granted.',
    unit: 'bytes',
    queries: [worst('sluice_shreds_receive_buffer_bytes')],
  },
  {
    title: 'Overruns',
    how: 'Packets the kernel threw away because they came faster than they were taken.',
    unit: 'short',
    queries: [rate('sluice_shreds_overruns_total')],
  },
  {
    title: 'Newest slot',
    how: 'The newest slot relayed.',
    unit: 'short',
    queries: [worst('sluice_shreds_newest_slot')],
  },
]

export const INDEXER_PANELS: readonly Panel[] = [
  {
    title: 'Behind the tip',
    how: 'Newest confirmed slot less the last slot of the stretch without a gap.',
    unit: 'short',
    queries: [
      {
        expr: 'max(sluice_indexer_tip_slot{instance=~"$instance"}) - max(sluice_indexer_head_slot{instance=~"$instance"})',
        legend: 'slots',
      },
    ],
  },
  {
    title: 'Blocks written',
    how: 'Blocks a second, and blocks that wait for one before them.',
    unit: 'short',
    queries: [rate('sluice_indexer_blocks_total'), gauge('sluice_indexer_held_blocks')],
  },
  {
    title: 'Time of a batch',
    how: 'Time to write one batch of blocks, with the transaction that makes it complete.',
    unit: 's',
    queries: quantiles('sluice_indexer_batch_seconds'),
  },
  {
    title: 'Queries',
    how: 'Queries of customers a second by what became of them, and those running now.',
    unit: 'reqps',
    queries: [rate('sluice_indexer_queries_total', 'outcome'), gauge('sluice_indexer_running_queries')],
  },
  {
    title: 'Time of a query',
    how: 'From the query to its whole answer.',
    unit: 's',
    queries: quantiles('sluice_indexer_query_seconds'),
  },
  {
    title: 'Sent to customers',
    how: 'Bytes before compression, and rows, a second.',
    unit: 'short',
    queries: [rate('sluice_indexer_query_bytes_total'), rate('sluice_indexer_query_rows_total')],
  },
  {
    title: 'Trouble of the stream',
    how: 'Losses of the block stream, gaps asked for, blocks that could not be read and turns of the chain, in the time shown.',
    unit: 'short',
    queries: [
      counted('sluice_indexer_stream_losses_total'),
      counted('sluice_indexer_gaps_total'),
      counted('sluice_indexer_block_faults_total'),
      counted('sluice_indexer_rewinds_total'),
    ],
  },
  {
    title: 'Trouble of the database',
    how: 'Starts of its process, queries that had to be killed and batches written again, in the time shown.',
    unit: 'short',
    queries: [
      counted('sluice_indexer_store_restarts_total'),
      counted('sluice_indexer_query_kills_total'),
      counted('sluice_indexer_write_retries_total'),
    ],
  },
]
