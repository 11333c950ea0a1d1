import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../../core/clock.ts'
import type { Secret } from '../../config/secret-ref.ts'
import type { ListenerOptions } from '../../net/listener.ts'
import type { ListenerMetrics } from '../../net/listener-metrics.ts'
import { systemClock } from '../../process/clock.ts'
import type { Health } from '../../process/lifecycle.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { negotiateFormat } from '../../telemetry/metrics-text.ts'
import type { MetricsView } from '../../telemetry/metrics-view.ts'
import { splitTarget } from '../request-headers.ts'
import { createHostAllowList } from './host-allow-list.ts'
import { createPathRules, sendPathRefusal } from './path-rules.ts'
import { sendJson, sendText } from './reply.ts'
import { type HttpServer, startHttpServer } from './server.ts'

export type OperatorListenerOptions = {
  listen: ListenerOptions
  bearer?: Secret | undefined
  /** Host names to accept beside localhost, addresses and the listen host. */
  hosts?: readonly string[] | undefined
}
export type OperatorListenerDeps = Partial<ListenerMetrics> & {
  log: Logger
  registry: Pick<MetricsView, 'text' | 'contentType'>
  /** Which metrics are shown, by name; all by default. */
  isShown?: ((name: string) => boolean) | undefined
  /** Called for each request. */
  health(): Health
  clock?: Clock | undefined
}

/**
 * The operator's endpoints: `/metrics` for Prometheus, `/healthz` (liveness) and `/readyz` (readiness) for balancers and supervisors. A degraded
 * process is ready: it serves, and names its reasons.
 */
export function startOperatorListener(
  options: OperatorListenerOptions,
  deps: OperatorListenerDeps,
): Promise<HttpServer> {
  const { log, clock = systemClock } = deps
  const isAllowedHost = createHostAllowList({ listenHost: options.listen.host, hosts: options.hosts ?? [] })
  return startHttpServer(
    { listen: options.listen },
    {
      log,
      clock,
      isForOperator: true,
      onRefused: deps.onRefused,
      onNotAfter: deps.onNotAfter,
      async onRequest(request, response) {
        if (!isAllowedHost(request.headers.host)) return sendJson(response, 421, UNKNOWN_HOST)
        const { path } = splitTarget(request.url)
        const refusal = refusePath(request.method, path)
        if (refusal !== undefined) return sendPathRefusal(response, refusal)
        if (path !== '/metrics') return sendHealth(path as '/healthz' | '/readyz', response)
        if (options.bearer && !hasBearer(request, options.bearer)) {
          return sendJson(response, 401, UNAUTHORIZED, { 'www-authenticate': 'Bearer' })
        }
        const format = negotiateFormat(request.headers.accept)
        const text = await deps.registry.text(format, deps.isShown)
        sendText(response, 200, text, { 'content-type': deps.registry.contentType(format) })
      },
    },
  )

  function sendHealth(path: '/healthz' | '/readyz', response: ServerResponse): void {
    const { state, reasons, startedMs } = deps.health()
    const ready = state === 'ok' || state === 'degraded'
    const nowMs = clock.nowMs()
    const body = {
      state,
      ready,
      uptime_seconds: age(startedMs, nowMs),
      reasons: reasons.map(({ part, reason, sinceMs }) => ({ part, reason, age_seconds: age(sinceMs, nowMs) })),
    }
    sendJson(response, path === '/healthz' || ready ? 200 : 503, body, { 'cache-control': 'no-store' })
  }
}

const refusePath = createPathRules(
  { '/metrics': ['GET'], '/healthz': ['GET'], '/readyz': ['GET'] },
  { isPreflighted: false },
)

const UNAUTHORIZED = { error: 'unauthorized', message: 'a bearer secret is required' }

const UNKNOWN_HOST = {
  error: 'host-not-allowed',
  fix: 'Use an address, or add the host name of this request to metrics.hosts.',
}

function age(sinceMs: number, nowMs: number): number {
  return Math.max(0, Math.floor((nowMs - sinceMs) / 1000))
}

function hasBearer(request: IncomingMessage, expected: Secret): boolean {
  const values = request.headersDistinct['authorization'] ?? []
  if (values.length !== 1) return false
  // The scheme is matched without case (RFC 9110 section 11.1).
  const sent = Buffer.from((values[0] as string).replace(/^bearer /i, 'Bearer '))
  const required = Buffer.from(`Bearer ${expected.reveal()}`)
  return sent.length === required.length && timingSafeEqual(sent, required)
}
