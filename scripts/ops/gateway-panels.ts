import { counted, gauge, type Panel, quantiles, rate, worst } from './board.ts'

export const OVERVIEW_PANELS: readonly Panel[] = [
  {
    title: 'Processes',
    how: 'Each line is a process that answers the scrape, with its version and that of its runtime.',
    unit: 'none',
    kind: 'stat',
    queries: [gauge('sluice_build_info', 'version, node')],
  },
  {
    title: 'Calls',
    how: 'Calls admitted and charged a second, by interface.',
    unit: 'reqps',
    queries: [rate('sluice_access_admitted_total', 'interface')],
  },
  {
    title: 'Units',
    how: 'Units charged a second, by interface.',
    unit: 'short',
    queries: [rate('sluice_access_units_total', 'interface')],
  },
  {
    title: 'Refused for want of a token',
    how: 'Refusals a second by reason; customers with a wrong token, or somebody who guesses.',
    unit: 'reqps',
    queries: [rate('sluice_access_refused_total', 'reason')],
  },
  {
    title: 'Refused by a limit of the plan',
    how: 'Refusals a second by the name of the limit. They were neither forwarded nor charged.',
    unit: 'reqps',
    queries: [rate('sluice_access_limited_total', 'limit')],
  },
  {
    title: 'Connections turned away',
    how: 'Connections refused before they could speak, by door and limit.',
    unit: 'reqps',
    queries: [rate('sluice_process_connections_refused_total', 'listener, reason')],
  },
]

export const ACCESS_PANELS: readonly Panel[] = [
  {
    title: 'Subscriptions and tokens',
    how: 'What the snapshot in memory holds, whatever its state.',
    unit: 'short',
    queries: [worst('sluice_access_subscriptions'), worst('sluice_access_tokens')],
  },
  {
    title: 'Store revision',
    how: 'The revision each process works with, and how often it took over a newer one; lines that stay apart mean a process that does not follow.',
    unit: 'short',
    queries: [worst('sluice_access_snapshot_revision', 'instance'), counted('sluice_access_snapshot_swaps_total')],
  },
  {
    title: 'Seats taken',
    how: 'Open connections, subscriptions and streams of all customers together.',
    unit: 'short',
    queries: [
      gauge('sluice_access_ws_connections'),
      gauge('sluice_access_ws_subscriptions'),
      gauge('sluice_access_grpc_streams'),
    ],
  },
  {
    title: 'Counted use on its way to the store',
    how: 'Rows that wait, and rows that were given up because the store could not take them.',
    unit: 'short',
    queries: [gauge('sluice_access_usage_waiting_rows'), counted('sluice_access_usage_lost_total')],
  },
  {
    title: 'Writes of counted use',
    how: 'Flushes a second; one for each process in a busy second.',
    unit: 'short',
    queries: [rate('sluice_access_usage_flushes_total')],
  },
  {
    title: 'Shared quota',
    how: 'Whether the shared ledger answers, how many processes share it, and its bookings a second.',
    unit: 'short',
    queries: [
      worst('sluice_access_quota_shared_up'),
      worst('sluice_access_quota_processes'),
      rate('sluice_access_quota_syncs_total', 'result'),
    ],
  },
]

export const BUNDLE_PANELS: readonly Panel[] = [
  {
    title: 'Requests by method',
    how: 'The ten busiest methods; unknown ones count as other.',
    unit: 'reqps',
    queries: [
      {
        ...rate('sluice_bundle_requests_total', 'method'),
        expr: `topk(10, ${rate('sluice_bundle_requests_total', 'method').expr})`,
      },
    ],
  },
  {
    title: 'Time to answer',
    how: 'From the admission of a call to its answer, or to the beginning of a large one.',
    unit: 's',
    queries: quantiles('sluice_bundle_answer_seconds', 'interface'),
  },
  {
    title: 'Refused by the gateway',
    how: 'Requests and connections refused by a limit, by its name.',
    unit: 'reqps',
    queries: [rate('sluice_bundle_refused_total', 'limit')],
  },
  {
    title: 'Open connections',
    how: 'WebSockets and gRPC streams, and the subscriptions held at nodes for all of them.',
    unit: 'short',
    queries: [gauge('sluice_bundle_connections', 'interface'), gauge('sluice_bundle_upstream_subscriptions')],
  },
  {
    title: 'Messages out',
    how: 'Messages a second on open connections.',
    unit: 'short',
    queries: [rate('sluice_bundle_messages_out_total', 'interface')],
  },
  {
    title: 'Bytes out',
    how: 'Bytes a second on open connections, framing included.',
    unit: 'Bps',
    queries: [rate('sluice_bundle_bytes_out_total', 'interface')],
  },
  {
    title: 'Trouble on streams',
    how: 'Gaps told to clients, clients cut since they did not read, and streams that lost their node, in the time shown.',
    unit: 'short',
    queries: [
      counted('sluice_bundle_gaps_told_total'),
      counted('sluice_bundle_slow_consumers_total', 'interface'),
      counted('sluice_bundle_grpc_resumes_total', 'result'),
    ],
  },
  {
    title: 'Refusals answered late',
    how: 'Wrong tokens of addresses that had shown too many, by interface.',
    unit: 'reqps',
    queries: [rate('sluice_bundle_late_refusals_total', 'interface')],
  },
  {
    title: 'Answers kept',
    how: 'How often an answer that never changes was known, and what the kept ones take.',
    unit: 'short',
    queries: [
      rate('sluice_bundle_cache_lookups_total', 'result'),
      gauge('sluice_bundle_cache_entries'),
      gauge('sluice_bundle_cache_bytes'),
    ],
  },
]

export const UPSTREAMS_PANELS: readonly Panel[] = [
  {
    title: 'Lag',
    how: 'Slots each node is behind the best one of its pool, and whether all are behind.',
    unit: 'short',
    queries: [worst('sluice_upstreams_lag_slots', 'upstream'), worst('sluice_upstreams_all_behind')],
  },
  {
    title: 'State',
    how: 'One for the state that a node is in.',
    unit: 'none',
    queries: [worst('sluice_upstreams_state', 'upstream, state', 'state!="healthy"')],
  },
  {
    title: 'Newest slot',
    how: 'The newest processed slot each node has shown.',
    unit: 'short',
    queries: [worst('sluice_upstreams_slot', 'upstream')],
  },
  {
    title: 'Time of a call',
    how: 'From forwarding a call to the end of its answer, or the beginning of a large one.',
    unit: 's',
    queries: quantiles('sluice_upstreams_call_seconds', 'upstream'),
  },
  {
    title: 'Calls',
    how: 'Calls a second by what became of them; a retried call counts for each node.',
    unit: 'reqps',
    queries: [rate('sluice_upstreams_calls_total', 'upstream, result')],
  },
  {
    title: 'Calls in flight',
    how: 'Calls on their way to a node or waiting for a connection.',
    unit: 'short',
    queries: [gauge('sluice_upstreams_calls_in_flight', 'upstream')],
  },
  {
    title: 'Retries',
    how: 'Calls asked of a second node by what the first did, those not made because the budget was spent, and calls for which there was no node.',
    unit: 'reqps',
    queries: [
      rate('sluice_upstreams_retries_total', 'reason'),
      rate('sluice_upstreams_retries_refused_total'),
      rate('sluice_upstreams_no_upstream_total'),
    ],
  },
  {
    title: 'Streams to nodes',
    how: 'Open WebSockets, the subscriptions on them, and gRPC streams.',
    unit: 'short',
    queries: [
      gauge('sluice_upstreams_ws_connections', 'upstream'),
      gauge('sluice_upstreams_ws_subscriptions', 'upstream'),
      gauge('sluice_upstreams_grpc_streams', 'upstream'),
    ],
  },
  {
    title: 'Streams lost',
    how: 'Connections to nodes lost or not made in the time shown, by reason.',
    unit: 'short',
    queries: [
      counted('sluice_upstreams_ws_losses_total', 'upstream, reason'),
      counted('sluice_upstreams_grpc_losses_total', 'upstream, reason'),
    ],
  },
]

export const PROCESS_PANELS: readonly Panel[] = [
  {
    title: 'Memory',
    how: 'Memory held in RAM and the JavaScript heap in use.',
    unit: 'bytes',
    queries: [gauge('sluice_process_resident_memory_bytes', 'instance'), gauge('sluice_process_heap_used_bytes')],
  },
  {
    title: 'Processor',
    how: 'Processors in use, user and system.',
    unit: 'short',
    queries: [rate('sluice_process_cpu_seconds_total', 'instance')],
  },
  {
    title: 'Event loop delay',
    how: 'How late timers ran during the last 10 s: median, 99th percentile, worst.',
    unit: 's',
    queries: [worst('sluice_process_event_loop_delay_seconds', 'stat')],
  },
  {
    title: 'Open files and sockets',
    how: 'Of those the process may open.',
    unit: 'short',
    queries: [gauge('sluice_process_open_descriptors', 'instance'), worst('sluice_process_descriptors_limit')],
  },
  {
    title: 'Up since',
    how: 'When the process started.',
    unit: 'dateTimeFromNow',
    kind: 'stat',
    queries: [
      {
        ...worst('sluice_process_start_timestamp_seconds', 'instance'),
        expr: `${worst('sluice_process_start_timestamp_seconds', 'instance').expr} * 1000`,
      },
    ],
  },
  {
    title: 'Certificates end',
    how: 'When the certificate in use at each door ends.',
    unit: 'dateTimeFromNow',
    kind: 'stat',
    queries: [
      {
        ...worst('sluice_tls_not_after_timestamp_seconds', 'listener'),
        expr: `${worst('sluice_tls_not_after_timestamp_seconds', 'listener').expr} * 1000`,
      },
    ],
  },
]
