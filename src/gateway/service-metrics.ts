import type { CustomerLog } from '../access/customer-log.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { type GatewayMetrics, gatewayMetrics, logRefusals } from './metrics.ts'
import type { WsServer } from './pubsub/ws.ts'
import type { ResponseCache } from './rpc/response-cache.ts'

/** What the metrics read at each scrape. They are registered first, so it is set when it exists. */
export type LateReadings = {
  cache?: Pick<ResponseCache, 'size'> | undefined
  ws?: Pick<WsServer, 'upstreamSubscriptions'>
}

/** The metrics of the service, whose refusals are also written to the customers' log. */
export function createServiceMetrics(
  registry: MetricsRegistry,
  customerLog: Pick<CustomerLog, 'log'>,
): { readonly metrics: GatewayMetrics; readonly readings: LateReadings } {
  const readings: LateReadings = {}
  const counted = gatewayMetrics(registry, {
    cache: () => readings.cache?.size ?? { entries: 0, bytes: 0 },
    upstreamSubscriptions: () => readings.ws?.upstreamSubscriptions ?? 0,
  })
  const metrics = {
    ...counted,
    rpc: logRefusals(counted.rpc, 'rpc', customerLog),
    ws: logRefusals(counted.ws, 'ws', customerLog),
    grpc: logRefusals(counted.grpc, 'grpc', customerLog),
  }
  return { metrics, readings }
}
