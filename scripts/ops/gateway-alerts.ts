import type { Alert } from './alert.ts'
import { AT, flat, grows } from './alert-examples.ts'

export const BUNDLE_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceResponsesSlow',
    expr: 'histogram_quantile(0.99, sum by (instance, interface, le) (rate(sluice_bundle_response_seconds_bucket[5m]))) > 2',
    for: '10m',
    severity: 'ticket',
    summary: '1 % of the {{ $labels.interface }} calls at {{ $labels.instance }} take more than two seconds.',
    does: ['Compare with the call duration by upstream, and drain a slow node: `sluice upstream drain NAME`.'],
    fires: {
      'sluice_bundle_response_seconds_bucket{interface="rpc",le="1",instance="a"}': grows(0),
      'sluice_bundle_response_seconds_bucket{interface="rpc",le="5",instance="a"}': grows(60),
      'sluice_bundle_response_seconds_bucket{interface="rpc",le="+Inf",instance="a"}': grows(60),
    },
    quiet: {
      'sluice_bundle_response_seconds_bucket{interface="rpc",le="1",instance="a"}': grows(60),
      'sluice_bundle_response_seconds_bucket{interface="rpc",le="5",instance="a"}': grows(60),
      'sluice_bundle_response_seconds_bucket{interface="rpc",le="+Inf",instance="a"}': grows(60),
    },
    labels: { ...AT, interface: 'rpc' },
  },
  {
    name: 'SluiceSlowConsumers',
    expr: 'sum by (instance, interface) (increase(sluice_bundle_slow_consumers_total[10m])) > 5',
    for: '0s',
    severity: 'ticket',
    summary:
      'More than five {{ $labels.interface }} clients at {{ $labels.instance }} were disconnected because they did not read.',
    does: [
      'Usually one customer with a slow connection: `sluice top` shows the streams per subscription. Narrower filters help most.',
    ],
    fires: { 'sluice_bundle_slow_consumers_total{interface="ws",instance="a"}': grows(1) },
    quiet: { 'sluice_bundle_slow_consumers_total{interface="ws",instance="a"}': flat(50) },
    labels: { ...AT, interface: 'ws' },
  },
  {
    name: 'SluiceGapsReported',
    expr: 'increase(sluice_bundle_gaps_reported_total[10m]) > 0',
    for: '0s',
    severity: 'ticket',
    summary: 'Streams of customers at {{ $labels.instance }} had a gap.',
    does: [
      'The connection to a node was lost and another node took over: the panel "Streams lost" shows node and reason.',
    ],
    fires: { 'sluice_bundle_gaps_reported_total{instance="a"}': grows(1) },
    quiet: { 'sluice_bundle_gaps_reported_total{instance="a"}': flat(3) },
    labels: AT,
  },
]

export const UPSTREAMS_ALERTS: readonly Alert[] = [
  {
    name: 'SluiceUpstreamBehind',
    expr: 'sluice_upstreams_lag_seconds > 20',
    for: '2m',
    severity: 'ticket',
    summary: 'The node {{ $labels.upstream }} is more than 20 s behind the best node.',
    does: ['It gets no calls while other nodes are ahead. Check the node; `sluice upstream list` shows all nodes.'],
    fires: { 'sluice_upstreams_lag_seconds{upstream="n1",instance="a"}': flat(32) },
    quiet: { 'sluice_upstreams_lag_seconds{upstream="n1",instance="a"}': flat(1) },
    labels: { ...AT, upstream: 'n1' },
  },
  {
    name: 'SluiceSlotStands',
    expr: 'sum by (instance) (changes(sluice_upstreams_slot[2m])) == 0',
    for: '1m',
    severity: 'page',
    summary: 'No node of Sluice at {{ $labels.instance }} has reported a new slot for more than two minutes.',
    does: [
      '`sluice upstream list` shows the newest slot of each node. Compare it with a public explorer: if the cluster has halted, wait; else all nodes have lost it, or the connection to them.',
    ],
    fires: {
      'sluice_upstreams_slot{upstream="n1",instance="a"}': flat(1000),
      'sluice_upstreams_slot{upstream="n2",instance="a"}': flat(990),
    },
    quiet: {
      'sluice_upstreams_slot{upstream="n1",instance="a"}': flat(1000),
      'sluice_upstreams_slot{upstream="n2",instance="a"}': '1000+150x60',
    },
    labels: AT,
  },
  {
    name: 'SluiceCallsFailing',
    expr: 'sum by (instance, upstream) (rate(sluice_upstreams_calls_total{outcome=~"failed|timeout"}[5m])) / (sum by (instance, upstream) (rate(sluice_upstreams_calls_total[5m])) > 0.1) > 0.05',
    for: '5m',
    severity: 'page',
    summary: 'More than 5 % of the calls to the node {{ $labels.upstream }} at {{ $labels.instance }} fail.',
    does: [
      '`sluice upstream list` shows the state of the node, the log of part `upstreams` the failures. Drain it while it is repaired: `sluice upstream drain NAME`.',
    ],
    fires: {
      'sluice_upstreams_calls_total{upstream="n1",outcome="responded",instance="a"}': grows(540),
      'sluice_upstreams_calls_total{upstream="n1",outcome="timeout",instance="a"}': grows(60),
    },
    quiet: {
      'sluice_upstreams_calls_total{upstream="n1",outcome="responded",instance="a"}': grows(590),
      'sluice_upstreams_calls_total{upstream="n1",outcome="timeout",instance="a"}': grows(10),
    },
    labels: { ...AT, upstream: 'n1' },
  },
  {
    name: 'SluiceUpstreamFailing',
    expr: 'sluice_upstreams_state{state="failing"} == 1',
    for: '1m',
    severity: 'ticket',
    summary: 'The node {{ $labels.upstream }} is failing and gets no calls.',
    does: ['`sluice upstream list` shows the reason, `sluice doctor` tests each of its endpoints.'],
    fires: { 'sluice_upstreams_state{upstream="n1",state="failing",instance="a"}': flat(1) },
    quiet: {
      'sluice_upstreams_state{upstream="n1",state="failing",instance="a"}': flat(0),
      'sluice_upstreams_state{upstream="n1",state="healthy",instance="a"}': flat(1),
    },
    labels: { ...AT, upstream: 'n1', state: 'failing' },
  },
  {
    name: 'SluiceDedicatedNodeFailing',
    expr: 'sluice_upstreams_dedicated_failing > 0',
    for: '1m',
    severity: 'page',
    summary: 'A dedicated node at {{ $labels.instance }} is failing, and its subscription uses no other node.',
    does: [
      '`sluice status` names the node, `sluice upstream list` shows the reason and the subscription, `sluice node test NODE` tests each of its endpoints.',
      'Repair the node, change its address or credential with `sluice node set NODE`, or assign another with `sluice node assign`.',
    ],
    fires: { 'sluice_upstreams_dedicated_failing{instance="a"}': flat(1) },
    quiet: { 'sluice_upstreams_dedicated_failing{instance="a"}': flat(0) },
    labels: AT,
  },
  {
    name: 'SluiceAllUpstreamsBehind',
    expr: 'sluice_upstreams_all_behind == 1',
    for: '1m',
    severity: 'page',
    summary: 'Every upstream node of Sluice at {{ $labels.instance }} is behind. They stay in use.',
    does: [
      'Either all nodes have the same problem, or the cluster has halted: compare the newest slot with a public explorer.',
    ],
    fires: { 'sluice_upstreams_all_behind{instance="a"}': flat(1) },
    quiet: { 'sluice_upstreams_all_behind{instance="a"}': flat(0) },
    labels: AT,
  },
  {
    name: 'SluiceNoWebSocketUpstream',
    expr: 'sluice_upstreams_ws_down == 1',
    for: '1m',
    severity: 'page',
    summary: 'No node of Sluice at {{ $labels.instance }} takes WebSocket connections: subscriptions get nothing.',
    does: [
      '`sluice upstream list` shows each node, `sluice doctor` tests their WebSocket addresses. Behind a proxy, see whether it lets WebSocket through.',
    ],
    fires: { 'sluice_upstreams_ws_down{instance="a"}': flat(1) },
    quiet: { 'sluice_upstreams_ws_down{instance="a"}': flat(0) },
    labels: AT,
  },
  {
    name: 'SluiceNoUpstream',
    expr: 'rate(sluice_upstreams_no_upstream_total[5m]) > 0',
    for: '1m',
    severity: 'page',
    summary: 'Calls at {{ $labels.instance }} are refused because no upstream node is available.',
    does: ['`sluice upstream list`: repair a node, undrain one with `sluice upstream undrain NAME`, or add another.'],
    fires: { 'sluice_upstreams_no_upstream_total{instance="a"}': grows(10) },
    quiet: { 'sluice_upstreams_no_upstream_total{instance="a"}': flat(10) },
    labels: AT,
  },
]
