import { counted, gauge, type Panel, quantiles, rate, worst } from './board.ts'

export const ADMIN_PANELS: readonly Panel[] = [
  {
    title: 'Admin requests',
    how: 'Requests of the admin API per second, by route and status.',
    unit: 'reqps',
    queries: [rate('sluice_admin_requests_total', 'route, status')],
  },
  {
    title: 'Admin refusals',
    how: 'Requests that the admin API refused, by reason.',
    unit: 'reqps',
    queries: [rate('sluice_admin_refused_total', 'reason')],
  },
  {
    title: 'Admin sessions',
    how: 'Open browser sessions of the admin API.',
    unit: 'short',
    queries: [gauge('sluice_admin_sessions')],
  },
]

export const SENDER_PANELS: readonly Panel[] = [
  {
    title: 'Received',
    how: 'Transactions received per second, by result of the checks.',
    unit: 'reqps',
    queries: [rate('sluice_sender_received_total', 'result')],
  },
  {
    title: 'Finished',
    how: 'Finished transactions, by final state.',
    unit: 'reqps',
    queries: [rate('sluice_sender_finished_total', 'state')],
  },
  {
    title: 'Time to land',
    how: 'Time from accepting a transaction to seeing it in a block, for each path that accepted it.',
    unit: 's',
    queries: quantiles('sluice_sender_time_to_land_seconds', 'path'),
  },
  {
    title: 'Dispatch time',
    how: 'Time from the end of a request to dispatching its transaction, and to the first response of each path.',
    unit: 's',
    queries: [
      ...quantiles('sluice_sender_first_dispatch_seconds'),
      ...quantiles('sluice_sender_first_response_seconds', 'path'),
    ],
  },
  {
    title: 'Attempts',
    how: 'Sends of transactions on a path, by result.',
    unit: 'reqps',
    queries: [rate('sluice_sender_attempts_total', 'path, response')],
  },
  {
    title: 'Pending',
    how: 'Pending transactions, receipts in memory, signatures whose receipts were removed early, and open connections to leaders.',
    unit: 'short',
    queries: [
      gauge('sluice_sender_pending'),
      gauge('sluice_sender_receipts'),
      gauge('sluice_sender_known_signatures'),
      gauge('sluice_sender_quic_connections'),
    ],
  },
  {
    title: 'Refused by a limit',
    how: 'Requests refused per second, by limit.',
    unit: 'reqps',
    queries: [rate('sluice_sender_limited_total', 'limit')],
  },
  {
    title: 'Tips',
    how: 'Lamports per second of transactions that landed and succeeded.',
    unit: 'short',
    queries: [rate('sluice_sender_tip_lamports_total')],
  },
  {
    title: 'Journal failures',
    how: 'Failed writes to the journal of accepted transactions, and events of tips that could not be written to the ledger.',
    unit: 'short',
    queries: [counted('sluice_sender_journal_failures_total'), counted('sluice_sender_tip_events_lost_total')],
  },
]

export const SHREDS_PANELS: readonly Panel[] = [
  {
    title: 'In and out',
    how: 'Packets per second from allowed sources, relayed, and sent to all destinations.',
    unit: 'short',
    queries: [
      rate('sluice_shreds_received_total', 'source'),
      rate('sluice_shreds_relayed_total'),
      rate('sluice_shreds_sent_total'),
    ],
  },
  {
    title: 'Delay in the relay',
    how: 'From the receipt of a shred by the kernel until it was sent to all destinations.',
    unit: 's',
    queries: quantiles('sluice_shreds_delay_seconds'),
  },
  {
    title: 'Checks made by the relay',
    how: 'Signature checks that the relay made itself because the checking thread did not run or did not keep up.',
    unit: 'short',
    queries: [rate('sluice_shreds_checked_by_relay_total')],
  },
  {
    title: 'Bytes out',
    how: 'Bytes of shreds per second, by destination index.',
    unit: 'Bps',
    queries: [rate('sluice_shreds_sent_bytes_total', 'destination')],
  },
  {
    title: 'Not relayed',
    how: 'Packets dropped per second by reason, and packets relayed without a signature check.',
    unit: 'short',
    queries: [rate('sluice_shreds_dropped_total', 'reason'), rate('sluice_shreds_unchecked_total')],
  },
  {
    title: 'Not sent',
    how: 'Relayed packets that were not sent to a destination, by reason and by destination index.',
    unit: 'short',
    queries: [
      rate('sluice_shreds_unsent_total', 'reason'),
      rate('sluice_shreds_unsent_by_destination_total', 'destination'),
    ],
  },
  {
    title: 'Destinations',
    how: 'Destinations by state, destinations that receive nothing, and port-unreachable responses.',
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
    how: '1 while an alarm is raised, and the number of alarms.',
    unit: 'short',
    queries: [worst('sluice_shreds_alarm', 'alarm'), counted('sluice_shreds_alarms_total', 'alarm')],
  },
  {
    title: 'Receive buffer',
    how: 'Receive buffer granted by the kernel.',
    unit: 'bytes',
    queries: [worst('sluice_shreds_receive_buffer_bytes')],
  },
  {
    title: 'Overruns',
    how: 'Packets that the kernel dropped because the receive buffer was full.',
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

const MERGE_PANELS: readonly Panel[] = [
  {
    title: 'Decoded, first by source',
    how: "Where nodes' own streams are merged: which source had transactions first, what became of those of nodes, and data sets that they filled.",
    unit: 'short',
    queries: [
      counted('sluice_decoded_first_total', 'source'),
      counted('sluice_decoded_upstream_transactions_total', 'outcome'),
      counted('sluice_decoded_upstream_invalid_total'),
      counted('sluice_decoded_data_sets_filled_total'),
      worst('sluice_decoded_upstream_streams'),
    ],
  },
  {
    title: 'Decoded, lead',
    how: 'By how much the first source was before the other.',
    unit: 's',
    queries: quantiles('sluice_decoded_lead_seconds'),
  },
]

export const DECODED_PANELS: readonly Panel[] = [
  ...MERGE_PANELS,
  {
    title: 'Decoded',
    how: 'Shreds per second that reached the engine by outcome, and transactions decoded.',
    unit: 'short',
    queries: [rate('sluice_decoded_shreds_total', 'outcome'), rate('sluice_decoded_transactions_total')],
  },
  {
    title: 'Decoded slots',
    how: 'Closed slots by result, FEC sets that needed recovery, data sets by result, and shreds that the engine did not keep up with.',
    unit: 'short',
    queries: [
      counted('sluice_decoded_slots_total', 'result'),
      counted('sluice_decoded_fec_sets_total', 'result'),
      counted('sluice_decoded_data_sets_total', 'result'),
      counted('sluice_decoded_input_dropped_total'),
      counted('sluice_decoded_unresolved_total'),
      counted('sluice_decoded_data_sets_too_large_total'),
    ],
  },
  {
    title: 'Decoded, lost on the way',
    how: 'Messages that clients or gateway threads did not read in time.',
    unit: 'short',
    queries: [counted('sluice_decoded_messages_lost_total', 'by')],
  },
  {
    title: 'Decoded delivery',
    how: 'From the arrival of the shred that completed a data set until its messages were written, p50 and p99.',
    unit: 's',
    queries: quantiles('sluice_decoded_delivery_seconds'),
  },
  {
    title: 'Decoded memory',
    how: 'Open slots, and bytes of shreds held until their data set is complete.',
    unit: 'short',
    queries: [worst('sluice_decoded_open_slots'), worst('sluice_decoded_held_bytes')],
  },
]

export const INDEXER_PANELS: readonly Panel[] = [
  {
    title: 'Behind the tip',
    how: 'From the last written slot without a gap to the newest slot that any node reports, in the length of a slot of the chain.',
    unit: 's',
    queries: [
      {
        expr: '(max by (instance) (sluice_indexer_tip_slot{instance=~"$instance"}) - max by (instance) (sluice_indexer_head_slot{instance=~"$instance"})) * on (instance) max by (instance) (sluice_slot_length_seconds{instance=~"$instance"})',
        legend: '{{instance}}',
      },
    ],
  },
  {
    title: 'Blocks written',
    how: 'Blocks per second, and blocks that wait for an earlier one.',
    unit: 'short',
    queries: [rate('sluice_indexer_blocks_total'), gauge('sluice_indexer_held_blocks')],
  },
  {
    title: 'Batch duration',
    how: 'Time to write and commit one batch of blocks.',
    unit: 's',
    queries: quantiles('sluice_indexer_batch_seconds'),
  },
  {
    title: 'Queries',
    how: 'Queries per second by result, and running queries.',
    unit: 'reqps',
    queries: [rate('sluice_indexer_queries_total', 'outcome'), gauge('sluice_indexer_running_queries')],
  },
  {
    title: 'Query duration',
    how: 'Time from a query to its complete result.',
    unit: 's',
    queries: quantiles('sluice_indexer_query_seconds'),
  },
  {
    title: 'Sent to customers',
    how: 'Bytes before compression and rows per second.',
    unit: 'short',
    queries: [rate('sluice_indexer_query_bytes_total'), rate('sluice_indexer_query_rows_total')],
  },
  {
    title: 'Block stream failures',
    how: 'Losses of the block stream, gaps filled with getBlock, slots that no node has any more, blocks that could not be decoded, forks, and written blocks that a fork replaced.',
    unit: 'short',
    queries: [
      counted('sluice_indexer_stream_losses_total'),
      counted('sluice_indexer_gaps_total'),
      counted('sluice_indexer_missing_slots_total'),
      counted('sluice_indexer_block_faults_total'),
      counted('sluice_indexer_rewinds_total'),
      counted('sluice_indexer_replaced_blocks_total'),
    ],
  },
  {
    title: 'Database failures',
    how: 'Restarts of the database process, kills to stop a query, and batches written after a retry.',
    unit: 'short',
    queries: [
      counted('sluice_indexer_store_restarts_total'),
      counted('sluice_indexer_query_kills_total'),
      counted('sluice_indexer_write_retries_total'),
    ],
  },
]
