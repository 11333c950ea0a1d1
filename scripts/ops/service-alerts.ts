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
      '`sluice tip stats` shows which path does not deliver; `sluice doctor` whether the way to the leader is open.',
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
    summary: 'Sluice at {{ $labels.instance }} could not write down transactions that it accepted.',
    does: [
      'The disk of the state folder is full or failing. They are sent all the same, but a restart would not know of them.',
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
      '`source-lost`: a receiver sends nothing; `refused-source`: somebody who is not on the list does; `overrun`: raise the receive buffer as `sluice doctor` says; `total-rate`: the machine sends all it may.',
      '`sluice shred report` shows what each customer got.',
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
    summary: 'The kernel at {{ $labels.instance }} threw shreds away before they were taken.',
    does: ['Raise `net.core.rmem_max` as `sluice doctor` says, and keep other work off the core of the relay.'],
    fires: { 'sluice_shreds_overruns_total{instance="a"}': grows(5) },
    quiet: { 'sluice_shreds_overruns_total{instance="a"}': flat(5) },
    labels: AT,
  },
  {
    name: 'SluiceIndexerBehind',
    expr: 'sluice_indexer_tip_slot - sluice_indexer_head_slot > 300',
    for: '5m',
    severity: 'ticket',
    summary: 'Tables at {{ $labels.instance }} are more than 300 slots behind the chain.',
    does: [
      '`sluice indexer status` says whether a gap is being asked for or the writes are slow; the view `coverage` tells customers.',
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
    name: 'SluiceIndexerRestarting',
    expr: 'increase(sluice_indexer_store_restarts_total[15m]) > 2',
    for: '0s',
    severity: 'page',
    summary:
      'The database process of the indexer at {{ $labels.instance }} was started again more than twice in 15 minutes.',
    does: [
      'Queries that cannot be stopped, or too little memory: the log names the query desk or the end of the process.',
    ],
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
    summary: 'No event came from the ring at {{ $labels.instance }} for more than ten seconds.',
    does: [
      'The node has stopped or its ring was replaced: `sluice ring watch`. After 30 s the service ends and is started again.',
    ],
    fires: { 'sluice_execution_last_event_age_seconds{instance="a"}': flat(15) },
    quiet: { 'sluice_execution_last_event_age_seconds{instance="a"}': flat(0.4) },
    labels: AT,
  },
  {
    name: 'SluiceRingGap',
    expr: 'increase(sluice_execution_ring_gaps_total[10m]) > 0',
    for: '0s',
    severity: 'ticket',
    summary: 'Events of the ring at {{ $labels.instance }} were overwritten before they could be read.',
    does: ['The reader was held up: see the event loop and the processor. Clients were told by `ring_gap`.'],
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
    does: ['Those clients were told by `backpressure`. Fewer kinds, or resuming after a break, helps them.'],
    fires: { 'sluice_execution_ws_dropped_total{instance="a"}': grows(60) },
    quiet: { 'sluice_execution_ws_dropped_total{instance="a"}': flat(60) },
    labels: AT,
  },
]
