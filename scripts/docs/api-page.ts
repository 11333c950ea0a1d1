import { BUILT } from '../../src/apps/build.ts'
import { PRODUCTS } from '../../src/contract/products.ts'
import { GENERATED, table } from './markdown.ts'

export function apiPage(): string {
  return `${[
    '# Interfaces',
    GENERATED,
    '## Products',
    table(
      ['key', 'product', 'authorization', 'in this build'],
      Object.entries(PRODUCTS).map(([key, { title, authorization, available }]) => [
        `\`${key}\``,
        title,
        authorization,
        available ? (BUILT[key as keyof typeof BUILT] ? 'yes' : 'not yet') : 'coming soon',
      ]),
    ),
    '## Bundle: RPC (8899)',
    'JSON-RPC 2.0 in a POST to `/`, `Content-Type: application/json`. The token goes in `x-token`, `Authorization: Bearer`, `x-api-key`, or the query as `api-key` or `api_key` (headers are preferred: queries get logged by others). Every answer carries `x-ratelimit-limit`, `-remaining`, `-reset` (seconds) and `-cost` in units, and `x-request-id`.',
    table(
      ['method', 'path', 'token', 'answer'],
      [
        [
          'POST',
          '/',
          'yes',
          "the node's own answer, or a refusal; each call of a batch is charged and refused on its own",
        ],
        ['GET', '/health', 'no', '`ok`, `behind` or `unknown`, as text'],
        ['GET', '/v1/whoami', 'yes', 'plan, limits, budget, month, open connections of the caller'],
        [
          'POST',
          '/v1/ws-ticket',
          'yes',
          '`{"ticket","expires_at"}`, good for 60 s, for clients that can set no WebSocket header',
        ],
      ],
    ),
    '## Bundle: WebSocket (8900)',
    "The PubSub methods of a Solana node. The token goes in `x-token` or `Authorization: Bearer` at the handshake; clients that can set no header use a ticket, `?ticket=…`. A refused handshake is HTTP 401 or 429. Subscription ids are the client's own and stay the same when the node behind changes; with `?gaps=1` such a change is told by `gapNotification`. `getRateLimits` answers the budget. Close codes: 4401 token ended, 1013 too slow, 1012 restart; never 1000 on a fault.",
    '## Bundle: gRPC (10010)',
    '`geyser.Geyser` with the token in the metadata `x-token` or `authorization`. Refused tokens are `PERMISSION_DENIED`, limits `RESOURCE_EXHAUSTED`, filters over the plan `INVALID_ARGUMENT` naming filter and rule. The budget is told as initial metadata under the names of the RPC headers. `grpc.health.v1.Health/Check` needs no token.',
    '## Operator metrics listener',
    table(
      ['method', 'path', 'answer'],
      [
        [
          'GET',
          '/metrics',
          'Prometheus text, or OpenMetrics where the Accept header asks for it; see [metrics.md](metrics.md)',
        ],
        ['GET', '/healthz', '200 while the process lives: `state`, `ready`, `uptime_seconds`, `reasons`'],
        ['GET', '/readyz', 'the same body; 200 when work may be sent here, 503 while starting and draining'],
      ],
    ),
    '## Errors',
    'Every error Sluice makes is in [errors.md](errors.md), with its status on each protocol.',
  ].join('\n\n')}\n`
}
