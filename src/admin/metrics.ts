import { ADMIN_ROUTES, type AdminRouteId } from '../contract/admin-routes.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { ADMIN_REFUSALS } from './api/errors.ts'

const ROUTES = [...(Object.keys(ADMIN_ROUTES) as AdminRouteId[]), 'session', 'sign-in', 'oidc', 'page', 'none'] as const
const STATUSES = ['2xx', '3xx', '4xx', '5xx'] as const

export type AdminMetrics = ReturnType<typeof adminMetrics>

/** `route` is the name of a route, `none` for a request that has none. */
export function adminMetrics(registry: MetricsRegistry, read: { sessions(): number }) {
  registry.gauge('sluice_admin_sessions', 'Open browser sessions of the admin API.', { read: read.sessions })
  return {
    requests: registry.counter('sluice_admin_requests_total', 'Requests of the admin API, by route and status.', {
      labels: { route: ROUTES, status: STATUSES },
    }),
    refused: registry.counter('sluice_admin_refused_total', 'Requests that the admin API refused, by reason.', {
      labels: { reason: ADMIN_REFUSALS },
    }),
  }
}

export function statusClass(status: number): (typeof STATUSES)[number] {
  return STATUSES[Math.min(5, Math.max(2, Math.floor(status / 100))) - 2] as (typeof STATUSES)[number]
}
