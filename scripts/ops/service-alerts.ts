import type { Alert } from './alert.ts'
import { AT, flat, grows } from './alert-examples.ts'

export const SERVICES_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceSenderNotLanding',
    expr: 'sum by (instance) (rate(sluice_sender_finished_total{state="landed"}[10m])) / (sum by (instance) (rate(sluice_sender_finished_total[10m])) > 0.1) < 0.5',
    for: '10m',
    severity: 'page',
    summary: 'Fewer than half of the transactions accepted at {{ $labels.instance }} land.',
    does: [
      '`sluice tip stats` shows which path does not deliver; `sluice doctor` shows whether a path to the leaders is open.',
    ],
    fires: {
      'sluice_sender_finished_total{state="landed",instance="a"}': grows(10),
      'sluice_sender_finished_total{state="expired",instance="a"}': grows(50),
    },
    quiet: {
      'sluice_sender_finished_total{state="landed",instance="a"}': grows(50),
      'sluice_sender_finished_total{state="expired",instance="a"}': grows(10),
    },
    labels: AT,
  },
  {
    name: 'SluiceSenderJournal',
    expr: 'increase(sluice_sender_journal_failures_total[10m]) > 0',
    for: '0s',
    severity: 'page',
    summary: 'Sluice at {{ $labels.instance }} could not write accepted transactions to its journal.',
    does: [
      'The disk of the state folder is full or failing. The transactions are sent, but not tracked after a restart.',
    ],
    fires: { 'sluice_sender_journal_failures_total{instance="a"}': grows(1) },
    quiet: { 'sluice_sender_journal_failures_total{instance="a"}': flat(1) },
    labels: AT,
  },
  {
    name: 'SluiceShredAlarm',
    expr: 'sluice_shreds_alarm == 1',
    for: '1m',
    severity: 'page',
    summary: 'Shreds at {{ $labels.instance }}: the alarm {{ $labels.alarm }} is raised.',
    does: [
      '`source-lost`: a source sends nothing; `refused-source`: packets from an address that is not in shreds.sources; `overrun`: raise the receive buffer as shown by `sluice doctor`; `total-rate`: the total send limit is reached.',
      '`sluice shred report` shows the delivery per subscription.',
    ],
    fires: { 'sluice_shreds_alarm{alarm="source-lost",instance="a"}': flat(1) },
    quiet: { 'sluice_shreds_alarm{alarm="source-lost",instance="a"}': flat(0) },
    labels: { ...AT, alarm: 'source-lost' },
  },
  {
    name: 'SluiceShredsOverrun',
    expr: 'increase(sluice_shreds_overruns_total[5m]) > 0',
    for: '0s',
    severity: 'ticket',
    summary: 'The kernel at {{ $labels.instance }} dropped shreds because the receive buffer was full.',
    does: ['Raise `net.core.rmem_max` as shown by `sluice doctor`, and keep other work off the core of the relay.'],
    fires: { 'sluice_shreds_overruns_total{instance="a"}': grows(5) },
    quiet: { 'sluice_shreds_overruns_total{instance="a"}': flat(5) },
    labels: AT,
  },
  {
    name: 'SluiceDecodedIncomplete',
    expr: 'sum by (instance) (increase(sluice_decoded_slots_total{result!="complete"}[10m])) / sum by (instance) (increase(sluice_decoded_slots_total[10m])) > 0.05',
    for: '5m',
    severity: 'ticket',
    summary: 'More than 5 % of the slots decoded at {{ $labels.instance }} lack transactions.',
    does: [
      'Too few shreds arrive: add a source to `shreds.sources`, and compare with `sluice shred listen` beside the relay. `sluice_decoded_input_dropped_total` grows where the engine does not keep up.',
    ],
    fires: {
      'sluice_decoded_slots_total{result="complete",instance="a"}': grows(10),
      'sluice_decoded_slots_total{result="incomplete",instance="a"}': grows(5),
    },
    quiet: {
      'sluice_decoded_slots_total{result="complete",instance="a"}': grows(10),
      'sluice_decoded_slots_total{result="incomplete",instance="a"}': flat(5),
    },
    labels: AT,
  },
  {
    name: 'SluiceIndexerBehind',
    expr: 'sluice_indexer_tip_slot - sluice_indexer_head_slot > 300',
    for: '5m',
    severity: 'ticket',
    summary: 'Tables at {{ $labels.instance }} are more than 300 slots behind the chain.',
    does: [
      '`sluice indexer status` shows whether a gap is being filled or the writes are slow. Customers see the lag in the view `coverage`.',
    ],
    fires: {
      'sluice_indexer_tip_slot{instance="a"}': flat(5000),
      'sluice_indexer_head_slot{instance="a"}': flat(4000),
    },
    quiet: {
      'sluice_indexer_tip_slot{instance="a"}': flat(5000),
      'sluice_indexer_head_slot{instance="a"}': flat(4990),
    },
    labels: AT,
  },
  {
    name: 'SluiceIndexerStopped',
    expr: 'sluice_indexer_stopped == 1',
    for: '1m',
    severity: 'page',
    summary:
      'The indexer at {{ $labels.instance }} writes no blocks: its disk is full, its database fails, or the nodes are of another chain.',
    does: [
      '`sluice indexer status` shows why and since when, `sluice status` the folder and whether queries continue.',
      'Free space, or repair the database. Missed blocks are fetched afterwards, as far back as the nodes have them.',
      'Nodes of another chain than the tables: correct `upstreams.nodes`, or move the folder `indexer/` of the state folder away for new tables, and restart.',
    ],
    fires: { 'sluice_indexer_stopped{instance="a"}': flat(1) },
    quiet: { 'sluice_indexer_stopped{instance="a"}': flat(0) },
    labels: AT,
  },
  {
    name: 'SluiceIndexerRestarting',
    expr: 'increase(sluice_indexer_store_restarts_total[15m]) > 2',
    for: '0s',
    severity: 'page',
    summary: 'The database process of the indexer at {{ $labels.instance }} restarted more than twice in 15 minutes.',
    does: ['A query could not be stopped, or memory is short: the log shows which.'],
    fires: { 'sluice_indexer_store_restarts_total{instance="a"}': grows(1) },
    quiet: { 'sluice_indexer_store_restarts_total{instance="a"}': flat(9) },
    labels: AT,
  },
]

export const EXECUTION_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceRingSilent',
    expr: 'sluice_execution_last_event_age_seconds > 10',
    for: '0s',
    severity: 'page',
    summary: 'No event arrived from the ring at {{ $labels.instance }} for more than ten seconds.',
    does: ['The node has stopped or its ring was replaced: `sluice ring watch`. After 30 s the service restarts.'],
    fires: { 'sluice_execution_last_event_age_seconds{instance="a"}': flat(15) },
    quiet: { 'sluice_execution_last_event_age_seconds{instance="a"}': flat(0.4) },
    labels: AT,
  },
  {
    name: 'SluiceRingGap',
    expr: 'increase(sluice_execution_ring_gaps_total[10m]) > 0',
    for: '0s',
    severity: 'ticket',
    summary: 'Events of the ring at {{ $labels.instance }} were overwritten before they were read.',
    does: ['The reader was delayed: check event loop delay and CPU. Clients received a `ring_gap` warning.'],
    fires: { 'sluice_execution_ring_gaps_total{instance="a"}': grows(1) },
    quiet: { 'sluice_execution_ring_gaps_total{instance="a"}': flat(2) },
    labels: AT,
  },
  {
    name: 'SluiceExecutionSlowClients',
    expr: 'rate(sluice_execution_ws_dropped_total[5m]) > 0',
    for: '10m',
    severity: 'ticket',
    summary: 'Frames for slow clients of the execution stream at {{ $labels.instance }} are dropped.',
    does: ['The clients received a `backpressure` warning. They should subscribe to fewer kinds.'],
    fires: { 'sluice_execution_ws_dropped_total{instance="a"}': grows(60) },
    quiet: { 'sluice_execution_ws_dropped_total{instance="a"}': flat(60) },
    labels: AT,
  },
]
