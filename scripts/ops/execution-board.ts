import { type Board, counted, gauge, quantiles, rate, worst } from './board.ts'

export const EXECUTION_BOARD: Board = {
  uid: 'sluice-execution',
  title: 'Sluice: execution service',
  rows: [
    {
      title: 'The chain',
      panels: [
        {
          title: 'TPS',
          how: 'Transactions per second over the last 2.5 blocks, as published.',
          unit: 'short',
          queries: [worst('sluice_execution_transactions_per_second')],
        },
        {
          title: 'Time to finalize',
          how: 'From the start of a block to its finalization, by the times of the ring.',
          unit: 's',
          queries: quantiles('sluice_execution_finalize_seconds'),
        },
        {
          title: 'Newest block',
          how: 'Newest block seen, and blocks held for JSON-RPC.',
          unit: 'short',
          queries: [worst('sluice_execution_block_number'), worst('sluice_execution_blocks_held')],
        },
      ],
    },
    {
      title: 'The ring',
      panels: [
        {
          title: 'Health and silence',
          how: 'One while events come, and seconds since the last one.',
          unit: 'short',
          queries: [worst('sluice_execution_healthy'), worst('sluice_execution_last_event_age_seconds')],
        },
        {
          title: 'Events',
          how: 'Events folded a second, and events in the ring that are not read yet.',
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
          how: 'Gaps, events in them, payloads overwritten, and events the node could not record or that are not known, in the time shown.',
          unit: 'short',
          queries: [
            counted('sluice_execution_ring_gaps_total'),
            counted('sluice_execution_ring_events_lost_total'),
            counted('sluice_execution_ring_payload_expired_total'),
            counted('sluice_execution_record_errors_total'),
            counted('sluice_execution_ring_unknown_events_total'),
          ],
        },
        {
          title: 'Blocks without figures',
          how: 'Blocks given up before their end, and blocks without contention figures, in the time shown.',
          unit: 'short',
          queries: [
            counted('sluice_execution_blocks_dropped_total'),
            counted('sluice_execution_blocks_incomplete_total'),
          ],
        },
        {
          title: 'Restarts',
          how: 'Times that the ring was replaced, and that the service ended because its source was silent, in the time shown.',
          unit: 'short',
          queries: [
            counted('sluice_execution_ring_restarts_total'),
            counted('sluice_execution_service_restarts_total'),
          ],
        },
      ],
    },
    {
      title: 'The stream',
      panels: [
        {
          title: 'Clients',
          how: 'Open WebSocket connections.',
          unit: 'short',
          queries: [gauge('sluice_execution_ws_connections')],
        },
        {
          title: 'Frames',
          how: 'Published a second by kind, and written to clients.',
          unit: 'short',
          queries: [rate('sluice_execution_published_total', 'kind'), rate('sluice_execution_ws_delivered_total')],
        },
        {
          title: 'Slow clients',
          how: 'Frames that wait for them, and frames dropped a second; each of them is told.',
          unit: 'short',
          queries: [gauge('sluice_execution_ws_waiting_frames'), rate('sluice_execution_ws_dropped_total')],
        },
        {
          title: 'Time to publish',
          how: 'From reading events to publishing what was folded from them.',
          unit: 's',
          queries: quantiles('sluice_execution_publish_seconds'),
        },
        {
          title: 'Time to hand out',
          how: 'Time to hand one round of frames to all sockets.',
          unit: 's',
          queries: quantiles('sluice_execution_ws_flush_seconds'),
        },
        {
          title: 'Resume buffer',
          how: 'Share in use, and what it holds.',
          unit: 'short',
          queries: [
            worst('sluice_execution_resume_used_ratio'),
            gauge('sluice_execution_resume_entries'),
            gauge('sluice_execution_resume_bytes'),
          ],
        },
        {
          title: 'Joins',
          how: 'Connections by how they began, in the time shown.',
          unit: 'short',
          queries: [counted('sluice_execution_ws_joins_total', 'how')],
        },
        {
          title: 'Ends',
          how: 'Connections ended, by who ended them and why, in the time shown.',
          unit: 'short',
          queries: [counted('sluice_execution_ws_closes_total', 'reason')],
        },
        {
          title: 'Refused',
          how: 'Handshakes refused by reason, and subscribe messages by code, in the time shown.',
          unit: 'short',
          queries: [
            counted('sluice_execution_ws_refused_total', 'reason'),
            counted('sluice_execution_ws_subscribe_refused_total', 'code'),
          ],
        },
        {
          title: 'JSON-RPC',
          how: 'Calls a second by method and outcome.',
          unit: 'reqps',
          queries: [rate('sluice_execution_rpc_calls_total', 'method, outcome')],
        },
        {
          title: 'Limits reached',
          how: 'Requests, calls and messages refused because of a limit, in the time shown.',
          unit: 'short',
          queries: [counted('sluice_execution_limits_reached_total', 'limit')],
        },
        {
          title: 'JSON-RPC memory',
          how: 'Requests at the moment, bytes of responses that clients have not read, and blocks kept as text.',
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
