import type { Alert } from './alert.ts'
import { AT, flat, grows } from './alert-examples.ts'

export const PROCESS_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceDown',
    expr: 'up{job=~"sluice.*"} == 0',
    for: '1m',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} does not answer the scrape.',
    does: [
      'On the machine: `sluice status`; if nothing runs there, `systemctl status sluice` and the end of its log.',
      '`sluice doctor` names what keeps it from starting, with the command that mends it. Exit code 78 is configuration or a damaged store (`sluice restore`), 75 a second instance on the same folder.',
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
    summary: 'Sluice at {{ $labels.instance }} was started again more than twice in 15 minutes.',
    does: [
      'The last lines of the log before each end say why; `journalctl -u sluice -p warning` shows all of them.',
      'Killed by the kernel for memory: see the memory panel, give it more or lower `indexer.store` and the caches.',
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
    summary: 'The event loop of Sluice at {{ $labels.instance }} runs more than 250 ms late.',
    does: [
      'The machine is too small or shared: compare the processor panel with the number of cores.',
      '`sluice top` shows which product is busy; move the indexer or the execution service to a process or machine of its own.',
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
    summary: 'Sluice at {{ $labels.instance }} has used four fifths of the files and sockets it may open.',
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
    summary: 'Sluice at {{ $labels.instance }} turns connections away to save its memory.',
    does: [
      'Look for clients that do not read (`sluice top`, the panel of slow clients) and for very large answers.',
      'Give the process more memory, or spread the customers over more machines.',
    ],
    fires: { 'sluice_process_connections_refused_total{listener="ws",reason="memory",instance="a"}': grows(1) },
    quiet: { 'sluice_process_connections_refused_total{listener="ws",reason="address-rate",instance="a"}': grows(1) },
    labels: AT,
  },
  {
    name: 'SluiceConnectionsFull',
    expr: 'sum by (instance, listener) (rate(sluice_process_connections_refused_total{reason="connections"}[5m])) > 0',
    for: '5m',
    severity: 'page',
    summary: 'The door {{ $labels.listener }} of Sluice at {{ $labels.instance }} has all the connections it may hold.',
    does: [
      '`sluice top` tells whether it is one customer. Add a machine, or raise the limit of the door if memory allows.',
    ],
    fires: { 'sluice_process_connections_refused_total{listener="rpc",reason="connections",instance="a"}': grows(5) },
    quiet: { 'sluice_process_connections_refused_total{listener="rpc",reason="connections",instance="a"}': flat(5) },
    labels: { ...AT, listener: 'rpc' },
  },
  {
    name: 'SluiceCertificateEnds',
    expr: 'sluice_tls_not_after_timestamp_seconds - time() < 7 * 86400',
    for: '0s',
    severity: 'page',
    summary:
      'The certificate at the door {{ $labels.listener }} of Sluice at {{ $labels.instance }} ends within seven days.',
    does: ['Renew the files named by `tls` of that door; they are read again when they change, no restart is needed.'],
    fires: { 'sluice_tls_not_after_timestamp_seconds{listener="rpc",instance="a"}': flat(86_400) },
    quiet: { 'sluice_tls_not_after_timestamp_seconds{listener="rpc",instance="a"}': flat(86_400 * 30) },
    labels: { ...AT, listener: 'rpc' },
  },
]

export const ACCESS_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceUsageLost',
    expr: 'increase(sluice_access_usage_lost_total[10m]) > 0',
    for: '0s',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} gave up counted use because the store did not take it.',
    does: [
      'The store is away or its disk is full: `sluice status` names which, `sluice doctor` the way out.',
      'What was given up is not charged; customers were served all the same.',
    ],
    fires: { 'sluice_access_usage_lost_total{instance="a"}': grows(1) },
    quiet: { 'sluice_access_usage_lost_total{instance="a"}': flat(7) },
    labels: AT,
  },
  {
    name: 'SluiceUsageWaits',
    expr: 'sluice_access_usage_waiting_rows > 1000',
    for: '5m',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} cannot write counted use; it is kept in memory.',
    does: [
      'A full disk or a store that is away. Free space or bring the store back; nothing is lost until memory for it is full.',
    ],
    fires: { 'sluice_access_usage_waiting_rows{instance="a"}': flat(5000) },
    quiet: { 'sluice_access_usage_waiting_rows{instance="a"}': flat(10) },
    labels: AT,
  },
  {
    name: 'SluiceQuotaLocal',
    expr: 'sluice_access_quota_shared_up == 0 and on (instance) increase(sluice_access_quota_syncs_total{result="failed"}[5m]) > 0',
    for: '2m',
    severity: 'ticket',
    summary: 'Sluice at {{ $labels.instance }} cannot reach the shared quota and goes on with its local share.',
    does: [
      'Bring Redis or Valkey back; budgets are then added up again. Until then each process gives out its share of them.',
    ],
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
    summary: 'Sluice at {{ $labels.instance }} works with an older state of customers than others do.',
    does: [
      'Revoked tokens may still work there. `sluice status` says whether it can read the store; check the way to PostgreSQL.',
      'Only for processes that share one store: installations with stores of their own belong into scrape jobs of their own (`sluice-eu`, `sluice-us`).',
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
    summary: 'More than a fifth of the calls at {{ $labels.instance }} are refused by a limit of their plan.',
    does: ['`sluice top` names the subscription and the limit. Talk to the customer, or raise it: `sluice sub limit`.'],
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
    summary: 'More than five calls a second at {{ $labels.instance }} show no valid token.',
    does: [
      'The reason tells what it is: `revoked` or `expired` is a customer who was not told, `unknown` and `malformed` somebody who tries.',
      'Addresses that try too often are answered late by themselves.',
    ],
    fires: { 'sluice_access_refused_total{reason="unknown",instance="a"}': grows(600) },
    quiet: { 'sluice_access_refused_total{reason="unknown",instance="a"}': grows(60) },
    labels: AT,
  },
]
