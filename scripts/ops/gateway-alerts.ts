import type { Alert } from './alert.ts'
import { AT, flat, grows } from './alert-examples.ts'

export const BUNDLE_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceAnswersSlow',
    expr: 'histogram_quantile(0.99, sum by (instance, interface, le) (rate(sluice_bundle_answer_seconds_bucket[5m]))) > 2',
    for: '10m',
    severity: 'ticket',
    summary: 'One in a hundred {{ $labels.interface }} calls at {{ $labels.instance }} takes more than two seconds.',
    does: ['Compare with the time of a call by upstream: a slow node is drained with `sluice upstream drain NAME`.'],
    fires: {
      'sluice_bundle_answer_seconds_bucket{interface="rpc",le="1",instance="a"}': grows(0),
      'sluice_bundle_answer_seconds_bucket{interface="rpc",le="5",instance="a"}': grows(60),
      'sluice_bundle_answer_seconds_bucket{interface="rpc",le="+Inf",instance="a"}': grows(60),
    },
    quiet: {
      'sluice_bundle_answer_seconds_bucket{interface="rpc",le="1",instance="a"}': grows(60),
      'sluice_bundle_answer_seconds_bucket{interface="rpc",le="5",instance="a"}': grows(60),
      'sluice_bundle_answer_seconds_bucket{interface="rpc",le="+Inf",instance="a"}': grows(60),
    },
    labels: { ...AT, interface: 'rpc' },
  },
  {
    name: 'SluiceSlowConsumers',
    expr: 'sum by (instance, interface) (increase(sluice_bundle_slow_consumers_total[10m])) > 5',
    for: '0s',
    severity: 'ticket',
    summary:
      'More than five {{ $labels.interface }} clients at {{ $labels.instance }} were cut because they did not read.',
    does: ['Usually one customer with a slow line: `sluice top` shows who has streams. Narrower filters help most.'],
    fires: { 'sluice_bundle_slow_consumers_total{interface="ws",instance="a"}': grows(1) },
    quiet: { 'sluice_bundle_slow_consumers_total{interface="ws",instance="a"}': flat(50) },
    labels: { ...AT, interface: 'ws' },
  },
  {
    name: 'SluiceGapsTold',
    expr: 'increase(sluice_bundle_gaps_told_total[10m]) > 0',
    for: '0s',
    severity: 'ticket',
    summary: 'Customers at {{ $labels.instance }} were told that their streams have a gap.',
    does: ['A node was lost and another took over: see the panel of lost streams for which and why.'],
    fires: { 'sluice_bundle_gaps_told_total{instance="a"}': grows(1) },
    quiet: { 'sluice_bundle_gaps_told_total{instance="a"}': flat(3) },
    labels: AT,
  },
]

export const UPSTREAMS_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceUpstreamBehind',
    expr: 'sluice_upstreams_lag_slots > 50',
    for: '2m',
    severity: 'ticket',
    summary: 'The node {{ $labels.upstream }} is more than 50 slots behind the best one.',
    does: [
      'It gets no calls while others are ahead. Look at the node; `sluice upstream list` shows it among the others.',
    ],
    fires: { 'sluice_upstreams_lag_slots{upstream="n1",instance="a"}': flat(80) },
    quiet: { 'sluice_upstreams_lag_slots{upstream="n1",instance="a"}': flat(2) },
    labels: { ...AT, upstream: 'n1' },
  },
  {
    name: 'SluiceUpstreamFailing',
    expr: 'sluice_upstreams_state{state="failing"} == 1',
    for: '1m',
    severity: 'ticket',
    summary: 'The node {{ $labels.upstream }} fails and gets no calls.',
    does: ['`sluice upstream list` gives the reason, `sluice doctor` tries each of its interfaces.'],
    fires: { 'sluice_upstreams_state{upstream="n1",state="failing",instance="a"}': flat(1) },
    quiet: {
      'sluice_upstreams_state{upstream="n1",state="failing",instance="a"}': flat(0),
      'sluice_upstreams_state{upstream="n1",state="healthy",instance="a"}': flat(1),
    },
    labels: { ...AT, upstream: 'n1', state: 'failing' },
  },
  {
    name: 'SluiceAllUpstreamsBehind',
    expr: 'sluice_upstreams_all_behind == 1',
    for: '1m',
    severity: 'page',
    summary: 'Every node behind Sluice at {{ $labels.instance }} is behind; they serve all the same.',
    does: [
      'Either the whole pool shares a fault, or the network has halted: compare the newest slot with a public explorer.',
    ],
    fires: { 'sluice_upstreams_all_behind{instance="a"}': flat(1) },
    quiet: { 'sluice_upstreams_all_behind{instance="a"}': flat(0) },
    labels: AT,
  },
  {
    name: 'SluiceNoUpstream',
    expr: 'rate(sluice_upstreams_no_upstream_total[5m]) > 0',
    for: '1m',
    severity: 'page',
    summary: 'Calls at {{ $labels.instance }} are refused because no node can be taken.',
    does: [
      '`sluice upstream list`: bring a node back, take one out of its drain with `sluice upstream undrain NAME`, or add another.',
    ],
    fires: { 'sluice_upstreams_no_upstream_total{instance="a"}': grows(10) },
    quiet: { 'sluice_upstreams_no_upstream_total{instance="a"}': flat(10) },
    labels: AT,
  },
]
