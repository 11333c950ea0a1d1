import { type Board, counted, gauge, least, quantiles, rate, worst } from './board.ts'

export const EXECUTION_BOARD: Board = {
  uid: 'sluice-execution',
  title: 'Sluice: execution service',
  // The endpoint of the service has no series of the process.
  processes: 'sluice_execution_healthy',
  rows: [
    {
      title: 'Chain',
      panels: [
        {
          title: 'TPS',
          how: 'Transactions per second over the last 2.5 blocks, as published.',
          unit: 'short',
          queries: [worst('sluice_execution_transactions_per_second')],
        },
        {
          title: 'Time to finalize',
          how: 'Time from the start of a block to its finalization, by the timestamps of the ring.',
          unit: 's',
          queries: quantiles('sluice_execution_finalize_seconds'),
        },
        {
          title: 'Newest block',
          how: 'Newest block seen, and blocks held for JSON-RPC.',
          unit: 'short',
          queries: [worst('sluice_execution_block_number'), worst('sluice_execution_blocks_held')],
        },
        {
          title: 'Blocks held for JSON-RPC',
          how: 'Lowest and highest number held, blocks on disk, and those that were not written to disk.',
          unit: 'short',
          queries: [
            least('sluice_execution_blocks_held_from'),
            worst('sluice_execution_blocks_held_to'),
            gauge('sluice_execution_archive_blocks'),
            counted('sluice_execution_archive_skipped_total'),
          ],
        },
        {
          title: 'Bytes of blocks on disk',
          how: 'Size of the blocks that JSON-RPC reads from disk.',
          unit: 'bytes',
          queries: [gauge('sluice_execution_archive_bytes')],
        },
        {
          title: 'History',
          how: 'Proposals in the history of the live page, and failed writes of it. After a failure the history goes on in memory; a restart loses what is not written.',
          unit: 'short',
          queries: [gauge('sluice_execution_history_blocks'), counted('sluice_execution_history_failures_total')],
        },
        {
          title: 'Bytes of the history on disk',
          how: 'At most execution.history.diskBytesMax.',
          unit: 'bytes',
          queries: [gauge('sluice_execution_history_bytes')],
        },
      ],
    },
    {
      title: 'Event ring',
      panels: [
        {
          title: 'Health and event age',
          how: '1 while events arrive, seconds since the last event, and 1 where the data is simulated.',
          unit: 'short',
          queries: [
            least('sluice_execution_healthy'),
            worst('sluice_execution_last_event_age_seconds'),
            worst('sluice_execution_simulated'),
          ],
        },
        {
          title: 'Events',
          how: 'Events folded per second, and unread events in the ring.',
          unit: 'short',
          queries: [rate('sluice_execution_ring_events_total'), worst('sluice_execution_ring_lag_events')],
        },
        {
          title: 'Position',
          how: 'The last event read from the ring.',
          unit: 'short',
          queries: [worst('sluice_execution_ring_seqno')],
        },
        {
          title: 'Lost',
          how: 'Gaps, lost events, overwritten payloads, and events that were not recorded, have an unknown type or are of a block that was not seen.',
          unit: 'short',
          queries: [
            counted('sluice_execution_ring_gaps_total'),
            counted('sluice_execution_ring_events_lost_total'),
            counted('sluice_execution_ring_payload_expired_total'),
            counted('sluice_execution_record_errors_total'),
            counted('sluice_execution_ring_unknown_events_total'),
            counted('sluice_execution_unknown_block_events_total'),
          ],
        },
        {
          title: 'Blocks without figures',
          how: 'Blocks dropped before their end, and blocks without contention figures.',
          unit: 'short',
          queries: [
            counted('sluice_execution_blocks_dropped_total'),
            counted('sluice_execution_blocks_incomplete_total'),
          ],
        },
        {
          title: 'Restarts',
          how: 'Replacements of the ring, and stops of the service because its source was silent.',
          unit: 'short',
          queries: [
            counted('sluice_execution_ring_restarts_total'),
            counted('sluice_execution_service_restarts_total'),
          ],
        },
      ],
    },
    {
      title: 'Stream',
      panels: [
        {
          title: 'Clients',
          how: 'Open WebSocket connections.',
          unit: 'short',
          queries: [gauge('sluice_execution_ws_connections')],
        },
        {
          title: 'Frames',
          how: 'Frames per second, published by kind and written to clients.',
          unit: 'short',
          queries: [rate('sluice_execution_published_total', 'kind'), rate('sluice_execution_ws_delivered_total')],
        },
        {
          title: 'Slow clients',
          how: 'Frames queued for slow clients, and frames dropped per second. Clients are notified of drops.',
          unit: 'short',
          queries: [gauge('sluice_execution_ws_waiting_frames'), rate('sluice_execution_ws_dropped_total')],
        },
        {
          title: 'Time to publish',
          how: 'Time from reading events to publishing their frames.',
          unit: 's',
          queries: quantiles('sluice_execution_publish_seconds'),
        },
        {
          title: 'Time to write',
          how: 'Time to write one batch of frames to all sockets.',
          unit: 's',
          queries: quantiles('sluice_execution_ws_flush_seconds'),
        },
        {
          title: 'Resume buffer',
          how: 'Share in use, frames and bytes.',
          unit: 'short',
          queries: [
            worst('sluice_execution_resume_used_ratio'),
            gauge('sluice_execution_resume_entries'),
            gauge('sluice_execution_resume_bytes'),
          ],
        },
        {
          title: 'Compression',
          how: 'Bytes of frames before and after permessage-deflate, per second.',
          unit: 'Bps',
          queries: [
            rate('sluice_execution_ws_deflate_in_bytes_total'),
            rate('sluice_execution_ws_deflate_out_bytes_total'),
          ],
        },
        {
          title: 'Joins',
          how: 'Connections by start: resumed, snapshot, cursor outside the window.',
          unit: 'short',
          queries: [counted('sluice_execution_ws_joins_total', 'how')],
        },
        {
          title: 'Ends',
          how: 'Connections closed, by side and reason.',
          unit: 'short',
          queries: [counted('sluice_execution_ws_closes_total', 'reason')],
        },
        {
          title: 'Refused',
          how: 'Refused handshakes by reason, and refused subscribe messages by code.',
          unit: 'short',
          queries: [
            counted('sluice_execution_ws_refused_total', 'reason'),
            counted('sluice_execution_ws_subscribe_refused_total', 'code'),
          ],
        },
        {
          title: 'JSON-RPC',
          how: 'Calls per second by method and outcome.',
          unit: 'reqps',
          queries: [rate('sluice_execution_rpc_calls_total', 'method, outcome')],
        },
        {
          title: 'Limits reached',
          how: 'Requests, calls and messages refused by a limit.',
          unit: 'short',
          queries: [counted('sluice_execution_limits_reached_total', 'limit')],
        },
        {
          title: 'JSON-RPC memory',
          how: 'Current requests, bytes of unread responses, and cached rendered blocks.',
          unit: 'short',
          queries: [
            gauge('sluice_execution_rpc_requests'),
            gauge('sluice_execution_rpc_unread_bytes'),
            gauge('sluice_execution_rpc_rendered_bytes'),
          ],
        },
      ],
    },
  ],
}
