import type { OutgoingHttpHeaders } from 'node:http'

/** Headers of responses that a web page may read. */
export const EXPOSED_HEADERS =
  'x-request-id, retry-after, x-clickhouse-query-id, x-clickhouse-format, x-clickhouse-summary, x-clickhouse-progress, x-clickhouse-timezone, x-clickhouse-server-display-name, x-clickhouse-exception-code, x-clickhouse-exception-tag, x-sluice-coverage-slot'

/** Needs no credentials: a browser sends none with a preflight. Without a grant the response only lists the methods. */
export function preflightHeaders(crossOrigin: OutgoingHttpHeaders): OutgoingHttpHeaders {
  const allow = 'GET, HEAD, POST, OPTIONS'
  if (crossOrigin['access-control-allow-origin'] === undefined) return { allow, ...crossOrigin }
  return {
    allow,
    ...crossOrigin,
    'access-control-allow-methods': allow,
    'access-control-allow-headers':
      'authorization, content-type, content-encoding, x-token, x-clickhouse-user, x-clickhouse-key, x-clickhouse-format, x-clickhouse-database, x-request-id',
    'access-control-max-age': '86400',
  }
}
