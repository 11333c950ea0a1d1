import { counted, gauge, least, type Panel, quantiles, rate, worst } from './board.ts'

export const OVERVIEW_PANELS: readonly Panel[] = [
  {
    title: 'Processes',
    how: 'Processes by version of Sluice and Node.',
    unit: 'none',
    kind: 'stat',
    queries: [gauge('sluice_build_info', 'version, node')],
  },
  {
    title: 'Calls',
    how: 'Calls admitted and charged per second, by interface.',
    unit: 'reqps',
    queries: [rate('sluice_access_admitted_total', 'interface')],
  },
  {
    title: 'Units',
    how: 'Units charged per second, by interface.',
    unit: 'short',
    queries: [rate('sluice_access_units_total', 'interface')],
  },
  {
    title: 'Refused tokens',
    how: 'Requests per second without a valid token, by reason, and those of subscriptions without their dedicated node.',
    unit: 'reqps',
    queries: [rate('sluice_access_refused_total', 'reason'), rate('sluice_access_not_assigned_total')],
  },
  {
    title: 'Refused by a limit of the plan',
    how: 'Refusals per second by limit. Refused calls are neither forwarded nor charged.',
    unit: 'reqps',
    queries: [rate('sluice_access_limited_total', 'limit')],
  },
  {
    title: 'Refused connections',
    how: 'Connections refused at accept, by listener and limit.',
    unit: 'reqps',
    queries: [rate('sluice_process_connections_refused_total', 'listener, reason')],
  },
]

export const ACCESS_PANELS: readonly Panel[] = [
  {
    title: 'Subscriptions and tokens',
    how: 'Subscriptions and tokens in the snapshot, in any state.',
    unit: 'short',
    queries: [worst('sluice_access_subscriptions'), worst('sluice_access_tokens')],
  },
  {
    title: 'Subscriptions that end',
    how: 'Subscriptions that work now and end within a day, and within seven days.',
    unit: 'short',
    queries: [worst('sluice_access_subscriptions_ending_day'), worst('sluice_access_subscriptions_ending_week')],
  },
  {
    title: 'Notices',
    how: 'Notices by kind, attempts to deliver them by result, and those that a receiver has not accepted yet.',
    unit: 'short',
    queries: [
      rate('sluice_notices_total', 'kind'),
      rate('sluice_notice_deliveries_total', 'result'),
      gauge('sluice_notices_waiting'),
    ],
  },
  {
    title: 'Store revision',
    how: 'Revision in use by each process, and snapshot replacements. Processes on different revisions for a long time do not follow the store.',
    unit: 'short',
    queries: [worst('sluice_access_snapshot_revision', 'instance'), counted('sluice_access_snapshot_swaps_total')],
  },
  {
    title: 'Open connections by limit',
    how: 'Open connections, subscriptions and streams of all customers.',
    unit: 'short',
    queries: [
      gauge('sluice_access_ws_connections'),
      gauge('sluice_access_ws_subscriptions'),
      gauge('sluice_access_grpc_streams'),
    ],
  },
  {
    title: 'Usage waiting for the store',
    how: 'Usage records waiting to be written, those kept on the disk, and records dropped because the store could not be written.',
    unit: 'short',
    queries: [
      gauge('sluice_access_usage_waiting_rows'),
      gauge('sluice_access_usage_spooled_rows'),
      counted('sluice_access_usage_lost_total'),
    ],
  },
  {
    title: 'Usage writes',
    how: 'Flushes per second, at most one per process, and those that failed.',
    unit: 'short',
    queries: [rate('sluice_access_usage_flushes_total'), rate('sluice_access_usage_failures_total')],
  },
  {
    title: 'Billing events',
    how: 'Events for the billing system that wait, dead letters, and how many seconds the oldest is behind; sent events and failed attempts per second.',
    unit: 'short',
    queries: [
      worst('sluice_billing_waiting_events'),
      worst('sluice_billing_dead_letters'),
      worst('sluice_billing_behind_seconds'),
      rate('sluice_billing_sent_total'),
      counted('sluice_billing_dead_total'),
      rate('sluice_billing_failures_total'),
    ],
  },
  {
    title: 'Shared quota',
    how: 'Whether the shared quota store responds to every process, processes that share it, and syncs per second.',
    unit: 'short',
    queries: [
      least('sluice_access_quota_shared_up'),
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
    title: 'Response time',
    how: 'Time from admitting a call to its response, or to the first byte of a large one.',
    unit: 's',
    queries: quantiles('sluice_bundle_response_seconds', 'interface'),
  },
  {
    title: 'Refused by the gateway',
    how: 'Requests and connections refused by a limit, by limit.',
    unit: 'reqps',
    queries: [rate('sluice_bundle_refused_total', 'limit')],
  },
  {
    title: 'Open connections',
    how: 'WebSockets and gRPC streams, and subscriptions at upstream nodes.',
    unit: 'short',
    queries: [gauge('sluice_bundle_connections', 'interface'), gauge('sluice_bundle_upstream_subscriptions')],
  },
  {
    title: 'Messages out',
    how: 'Messages per second on open connections.',
    unit: 'short',
    queries: [rate('sluice_bundle_messages_out_total', 'interface')],
  },
  {
    title: 'Bytes out',
    how: 'Bytes per second on open connections, framing included.',
    unit: 'Bps',
    queries: [rate('sluice_bundle_bytes_out_total', 'interface')],
  },
  {
    title: 'Stream failures',
    how: 'Gaps reported to clients, clients disconnected because they did not read, and streams that lost their node.',
    unit: 'short',
    queries: [
      counted('sluice_bundle_gaps_reported_total'),
      counted('sluice_bundle_slow_consumers_total', 'interface'),
      counted('sluice_bundle_grpc_resumes_total', 'result'),
    ],
  },
  {
    title: 'Delayed refusals',
    how: 'Delayed responses to refused tokens of addresses that sent too many, by interface.',
    unit: 'reqps',
    queries: [rate('sluice_bundle_delayed_refusals_total', 'interface')],
  },
  {
    title: 'Response cache',
    how: 'Cache lookups by result, entries and bytes.',
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
    how: 'Time behind the best node of the pool.',
    unit: 's',
    queries: [worst('sluice_upstreams_lag_seconds', 'upstream')],
  },
  {
    title: 'Lag in slots',
    how: 'Slots behind the best node of the pool, and whether all nodes are behind.',
    unit: 'short',
    queries: [worst('sluice_upstreams_lag_slots', 'upstream'), worst('sluice_upstreams_all_behind')],
  },
  {
    title: 'Slot length',
    how: 'Length of a slot of the chain, as learned from the nodes: 0.4 s, after SIMD-0525 down to 0.2 s.',
    unit: 's',
    queries: [worst('sluice_slot_length_seconds')],
  },
  {
    title: 'State',
    how: '1 for the current state of a node.',
    unit: 'none',
    queries: [worst('sluice_upstreams_state', 'upstream, state', 'state!="healthy"')],
  },
  {
    title: 'Dedicated nodes',
    how: 'Dedicated nodes that are assigned to a subscription, and those of them that are failing.',
    unit: 'short',
    queries: [worst('sluice_upstreams_dedicated_nodes'), worst('sluice_upstreams_dedicated_failing')],
  },
  {
    title: 'Newest slot',
    how: 'Newest processed slot of each node.',
    unit: 'short',
    queries: [worst('sluice_upstreams_slot', 'upstream')],
  },
  {
    title: 'Call duration',
    how: 'Time from forwarding a call to the end of its response, or to the first byte of a large one.',
    unit: 's',
    queries: quantiles('sluice_upstreams_call_seconds', 'upstream'),
  },
  {
    title: 'Calls',
    how: 'Calls per second by result; a retried call counts for each node.',
    unit: 'reqps',
    queries: [rate('sluice_upstreams_calls_total', 'upstream, outcome')],
  },
  {
    title: 'Calls in flight',
    how: 'Calls in flight to a node or waiting for a connection.',
    unit: 'short',
    queries: [gauge('sluice_upstreams_calls_in_flight', 'upstream')],
  },
  {
    title: 'Retries',
    how: 'Calls retried on a second node by failure of the first, retries skipped because the budget was spent, and calls without an available node.',
    unit: 'reqps',
    queries: [
      rate('sluice_upstreams_retries_total', 'failure'),
      rate('sluice_upstreams_retries_refused_total'),
      rate('sluice_upstreams_no_upstream_total'),
    ],
  },
  {
    title: 'Streams to nodes',
    how: 'Open WebSockets, their subscriptions, and gRPC streams.',
    unit: 'short',
    queries: [
      gauge('sluice_upstreams_ws_connections', 'upstream'),
      worst('sluice_upstreams_ws_down', 'instance'),
      gauge('sluice_upstreams_ws_subscriptions', 'upstream'),
      gauge('sluice_upstreams_grpc_streams', 'upstream'),
    ],
  },
  {
    title: 'Streams lost',
    how: 'Connections to nodes that were lost or failed, by reason.',
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
    how: 'Resident memory, JavaScript heap of all threads in use, what the memory guard counts as live, and buffered requests and responses.',
    unit: 'bytes',
    queries: [
      gauge('sluice_process_resident_memory_bytes', 'instance'),
      gauge('sluice_process_heap_used_bytes'),
      gauge('sluice_process_live_bytes'),
      gauge('sluice_process_held_bytes'),
    ],
  },
  {
    title: 'Garbage collections of the memory guard',
    how: 'Collections that the guard asked for because the memory of the process was near its limit or an idle thread held much garbage.',
    unit: 'short',
    queries: [counted('sluice_process_memory_collections_total', 'instance')],
  },
  {
    title: 'Processor',
    how: 'CPU cores in use, user and system.',
    unit: 'short',
    queries: [rate('sluice_process_cpu_seconds_total', 'instance')],
  },
  {
    title: 'Event loop delay',
    how: 'Event loop delay in the last 10 s, of the slowest thread: median, 99th percentile, maximum.',
    unit: 's',
    queries: [worst('sluice_process_event_loop_delay_seconds', 'stat')],
  },
  {
    title: 'Open files and sockets',
    how: 'Open descriptors, and their limit.',
    unit: 'short',
    queries: [gauge('sluice_process_open_descriptors', 'instance'), worst('sluice_process_descriptors_limit')],
  },
  {
    title: 'Free disk space',
    how: 'Free space on the file system of the state folder, and its size.',
    unit: 'bytes',
    queries: [gauge('sluice_process_disk_free_bytes', 'instance'), worst('sluice_process_disk_size_bytes')],
  },
  {
    title: 'Up since',
    how: 'Start time of the process.',
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
    title: 'Certificate expiry',
    how: 'Expiry of the certificate of each listener; with several processes, of the first that expires.',
    unit: 'dateTimeFromNow',
    kind: 'stat',
    queries: [
      {
        ...least('sluice_tls_not_after_timestamp_seconds', 'listener'),
        expr: `${least('sluice_tls_not_after_timestamp_seconds', 'listener').expr} * 1000`,
      },
    ],
  },
]
