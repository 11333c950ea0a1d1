import type { Alert } from './alert.ts'
import { AT, flat, grows } from './alert-examples.ts'

export const PROCESS_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceDown',
    expr: 'up{job=~"sluice.*"} == 0',
    for: '1m',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} does not respond to the scrape.',
    does: [
      'On the machine run `sluice status`. If no process runs, check `systemctl status sluice` and the last log lines.',
      '`sluice doctor` shows what prevents the start, with a fix. Exit code 78 means invalid configuration or a damaged store (`sluice restore`), 75 a second instance on the same folder.',
    ],
    fires: { 'up{job="sluice",instance="a"}': flat(0) },
    quiet: { 'up{job="sluice",instance="a"}': flat(1) },
    labels: { ...AT, job: 'sluice' },
  },
  {
    name: 'SluiceRestarting',
    expr: 'changes(sluice_process_start_timestamp_seconds[15m]) > 2',
    for: '0s',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} restarted more than twice in 15 minutes.',
    does: [
      'The last log lines before each exit show the reason: `journalctl -u sluice -p warning`.',
      'If the kernel killed it for memory, see the memory panel; add memory, or lower `indexer.store` and the caches.',
    ],
    fires: { 'sluice_process_start_timestamp_seconds{instance="a"}': '0+100x60' },
    quiet: { 'sluice_process_start_timestamp_seconds{instance="a"}': flat(100) },
    labels: AT,
  },
  {
    name: 'SluiceEventLoopSlow',
    expr: 'sluice_process_event_loop_delay_seconds{stat="p99"} > 0.25',
    for: '5m',
    severity: 'ticket',
    summary: 'The event loop delay of Sluice at {{ $labels.instance }} is above 250 ms.',
    does: [
      'The panels of the threads show which one is slow, and how busy each is.',
      'The machine is too small or shared: compare the CPU panel with the number of cores.',
      '`sluice top` shows which product is busy; move the indexer or the execution service to another process or machine.',
    ],
    fires: { 'sluice_process_event_loop_delay_seconds{stat="p99",instance="a"}': flat(0.5) },
    quiet: {
      'sluice_process_event_loop_delay_seconds{stat="p99",instance="a"}': flat(0.01),
      'sluice_process_event_loop_delay_seconds{stat="max",instance="a"}': flat(3),
    },
    labels: { ...AT, stat: 'p99' },
  },
  {
    name: 'SluiceDescriptorsShort',
    expr: 'sluice_process_open_descriptors / (sluice_process_descriptors_limit > 0) > 0.8',
    for: '5m',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} uses more than 80 % of its file descriptors.',
    does: ['Raise `LimitNOFILE` of the unit to 65536 or more and restart; `sluice doctor` checks it.'],
    fires: {
      'sluice_process_open_descriptors{instance="a"}': flat(900),
      'sluice_process_descriptors_limit{instance="a"}': flat(1024),
    },
    quiet: {
      'sluice_process_open_descriptors{instance="a"}': flat(900),
      'sluice_process_descriptors_limit{instance="a"}': flat(65_536),
    },
    labels: AT,
  },
  {
    name: 'SluiceMemoryFull',
    expr: 'sum by (instance) (increase(sluice_process_connections_refused_total{reason="memory"}[5m])) > 0',
    for: '0s',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} refuses connections because memory is short.',
    does: [
      'Look for clients that do not read (`sluice top`, the panel of slow clients) and for very large responses.',
      'Raise `memory.residentBytesMax`, which decides about it and not the memory of the machine, and `MemoryHigh=` and `MemoryMax=` of the unit with it; or distribute the customers over more machines.',
    ],
    fires: { 'sluice_process_connections_refused_total{door="ws",reason="memory",instance="a"}': grows(1) },
    quiet: { 'sluice_process_connections_refused_total{door="ws",reason="address-rate",instance="a"}': grows(1) },
    labels: AT,
  },
  {
    name: 'SluiceConnectionsFull',
    expr: 'sum by (instance, door) (rate(sluice_process_connections_refused_total{reason="connections"}[5m])) > 0',
    for: '5m',
    severity: 'page',
    summary: 'The listener {{ $labels.door }} of Sluice at {{ $labels.instance }} has reached its connection limit.',
    does: [
      '`sluice top` shows whether one customer causes it. A port takes 20,000 connections, which no option changes: lower `addressConnectionsMax` of that listener if few addresses have most of them, or add a machine.',
    ],
    fires: { 'sluice_process_connections_refused_total{door="rpc",reason="connections",instance="a"}': grows(5) },
    quiet: { 'sluice_process_connections_refused_total{door="rpc",reason="connections",instance="a"}': flat(5) },
    labels: { ...AT, door: 'rpc' },
  },
  {
    name: 'SluiceCertificateEnds',
    expr: 'sluice_tls_not_after_timestamp_seconds - time() < 7 * 86400',
    for: '0s',
    severity: 'page',
    summary:
      'The certificate of the listener {{ $labels.door }} of Sluice at {{ $labels.instance }} expires within seven days.',
    does: ['Renew the files in `tls` of that listener; they are reloaded without a restart.'],
    fires: { 'sluice_tls_not_after_timestamp_seconds{door="rpc",instance="a"}': flat(86_400) },
    quiet: { 'sluice_tls_not_after_timestamp_seconds{door="rpc",instance="a"}': flat(86_400 * 30) },
    labels: { ...AT, door: 'rpc' },
  },
]

export const DISK_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceDiskFull',
    expr: 'sluice_process_disk_free_bytes / sluice_process_disk_size_bytes < 0.01',
    for: '0s',
    severity: 'page',
    summary: 'The disk of the state folder of Sluice at {{ $labels.instance }} is full.',
    does: [
      '`sluice status` names the folder and what has stopped: changes of customers are refused, usage is kept in reserved space, the sender and the indexer stop writing. Calls and queries continue.',
      'Free space, or move `indexer/` of the state folder to a larger disk. Everything continues by itself when there is space.',
    ],
    fires: {
      'sluice_process_disk_free_bytes{instance="a"}': flat(1e6),
      'sluice_process_disk_size_bytes{instance="a"}': flat(1e9),
    },
    quiet: {
      'sluice_process_disk_free_bytes{instance="a"}': flat(5e7),
      'sluice_process_disk_size_bytes{instance="a"}': flat(1e9),
    },
    labels: AT,
  },
  {
    name: 'SluiceDiskFilling',
    expr: 'sluice_process_disk_free_bytes / sluice_process_disk_size_bytes < 0.1',
    for: '5m',
    severity: 'ticket',
    summary: 'Less than 10 % of the disk of the state folder of Sluice at {{ $labels.instance }} is free.',
    does: [
      'Free space before it is full: `du -xh --max-depth=2` in the state folder shows what is large, usually the tables of the indexer.',
    ],
    fires: {
      'sluice_process_disk_free_bytes{instance="a"}': flat(5e7),
      'sluice_process_disk_size_bytes{instance="a"}': flat(1e9),
    },
    quiet: {
      'sluice_process_disk_free_bytes{instance="a"}': flat(5e8),
      'sluice_process_disk_size_bytes{instance="a"}': flat(1e9),
    },
    labels: AT,
  },
]

export const ACCESS_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceUsageLost',
    expr: 'increase(sluice_access_usage_lost_total[10m]) > 0',
    for: '0s',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} dropped usage records because the store could not be written.',
    does: [
      'The store is unreachable or its disk is full: `sluice status` shows which, `sluice doctor` shows a fix.',
      'The dropped usage is not charged; calls of customers were served.',
    ],
    fires: { 'sluice_access_usage_lost_total{instance="a"}': grows(1) },
    quiet: { 'sluice_access_usage_lost_total{instance="a"}': flat(7) },
    labels: AT,
  },
  {
    name: 'SluiceUsageWaits',
    expr: 'sluice_access_usage_spooled_rows > 0',
    for: '1m',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} cannot write usage records to the store and keeps them on the disk.',
    does: [
      'The disk is full or the store is unreachable: `sluice status` shows which. Free space or repair the store; the records are then written by themselves.',
      'Nothing is lost by a stop or a crash: the records are in `usage-spool.*` of the state folder, and the next start writes them. Keep these files.',
    ],
    fires: { 'sluice_access_usage_spooled_rows{instance="a"}': flat(5) },
    quiet: {
      'sluice_access_usage_spooled_rows{instance="a"}': flat(0),
      'sluice_access_usage_waiting_rows{instance="a"}': flat(5000),
    },
    labels: AT,
  },
  {
    name: 'SluiceUsageUnsafe',
    expr: 'sluice_access_usage_unsafe == 1',
    for: '0s',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} can write usage records neither to the store nor to the disk.',
    does: [
      'Do not stop or restart the process: the records are only in its memory. `sluice status` shows why both fail.',
      'Free space on the disk of the state folder first, then repair the store.',
    ],
    fires: { 'sluice_access_usage_unsafe{instance="a"}': flat(1) },
    quiet: { 'sluice_access_usage_unsafe{instance="a"}': flat(0) },
    labels: AT,
  },
  {
    name: 'SluiceBillingBehind',
    expr: 'sluice_billing_behind_seconds > 7200',
    for: '1m',
    severity: 'ticket',
    summary: 'Sluice at {{ $labels.instance }} has not sent usage to the billing system for more than two hours.',
    does: [
      '`sluice billing status` shows what waits and the dead letters; the log of part `billing` has what the billing system responded.',
      'Usage is in the store and is sent when the billing system accepts it. Stripe accepts a repetition for 24 hours only: what waits longer becomes a dead letter.',
    ],
    fires: { 'sluice_billing_behind_seconds{instance="a"}': flat(8000) },
    quiet: { 'sluice_billing_behind_seconds{instance="a"}': flat(60) },
    labels: AT,
  },
  {
    name: 'SluiceSubscriptionsEnding',
    expr: 'sluice_access_subscriptions_ending_week > 0',
    for: '0s',
    severity: 'ticket',
    summary: 'Subscriptions at {{ $labels.instance }} end within seven days.',
    does: [
      '`sluice sub list --ending 7d` lists them, the next first. Ask the customers, then extend them: `sluice sub renew`.',
    ],
    fires: { 'sluice_access_subscriptions_ending_week{instance="a"}': flat(2) },
    quiet: { 'sluice_access_subscriptions_ending_week{instance="a"}': flat(0) },
    labels: AT,
  },
  {
    name: 'SluiceQuotaLocal',
    expr: 'sluice_access_quota_shared_up == 0 and on (instance) increase(sluice_access_quota_syncs_total{result="failed"}[5m]) > 0',
    for: '2m',
    severity: 'ticket',
    summary: 'Sluice at {{ $labels.instance }} cannot reach the shared quota store and uses its local share.',
    does: ['Repair Redis or Valkey. Until then each process enforces its share of the budgets.'],
    fires: {
      'sluice_access_quota_shared_up{instance="a"}': flat(0),
      'sluice_access_quota_syncs_total{result="failed",instance="a"}': grows(10),
    },
    quiet: {
      'sluice_access_quota_shared_up{instance="a"}': flat(0),
      'sluice_access_quota_syncs_total{result="failed",instance="a"}': flat(0),
    },
    labels: AT,
  },
  {
    name: 'SluiceStoreNotFollowed',
    expr: 'max by (job) (sluice_access_snapshot_revision) - on (job) group_right () sluice_access_snapshot_revision > 0',
    for: '2m',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} uses an older revision of the access store than other processes.',
    does: [
      'Revoked tokens may still work there. `sluice status` shows whether it can read the store; check the connection to PostgreSQL.',
      'Only for processes that share one store: use separate scrape jobs for installations with separate stores (`sluice-eu`, `sluice-us`).',
    ],
    fires: {
      'sluice_access_snapshot_revision{job="sluice",instance="a"}': flat(5),
      'sluice_access_snapshot_revision{job="sluice",instance="b"}': flat(6),
    },
    quiet: {
      'sluice_access_snapshot_revision{job="sluice",instance="a"}': flat(6),
      'sluice_access_snapshot_revision{job="sluice",instance="b"}': flat(6),
    },
    labels: { ...AT, job: 'sluice' },
  },
  {
    name: 'SluiceRefusalsRising',
    expr: 'sum by (instance) (rate(sluice_access_limited_total[5m])) / (sum by (instance) (rate(sluice_access_admitted_total[5m])) + sum by (instance) (rate(sluice_access_limited_total[5m]))) > 0.2',
    for: '10m',
    severity: 'ticket',
    summary: 'More than 20 % of the calls at {{ $labels.instance }} are refused by a plan limit.',
    does: [
      '`sluice top` shows the subscription and the limit. Contact the customer, or raise the limit: `sluice sub limit`.',
    ],
    fires: {
      'sluice_access_limited_total{limit="unitsPerSecond",instance="a"}': grows(60),
      'sluice_access_admitted_total{interface="rpc",instance="a"}': grows(60),
    },
    quiet: {
      'sluice_access_limited_total{limit="unitsPerSecond",instance="a"}': grows(6),
      'sluice_access_admitted_total{interface="rpc",instance="a"}': grows(600),
    },
    labels: AT,
  },
  {
    name: 'SluiceTokensRefused',
    expr: 'sum by (instance) (rate(sluice_access_refused_total[5m])) > 5',
    for: '10m',
    severity: 'ticket',
    summary: 'More than five calls per second at {{ $labels.instance }} have no valid token.',
    does: [
      'Check the reason: `revoked` and `expired` are customers with an old token, `unknown` and `malformed` are guesses or misconfigured clients.',
      'Responses to addresses with too many refused tokens are delayed automatically.',
    ],
    fires: { 'sluice_access_refused_total{reason="unknown",instance="a"}': grows(600) },
    quiet: { 'sluice_access_refused_total{reason="unknown",instance="a"}': grows(60) },
    labels: AT,
  },
]
