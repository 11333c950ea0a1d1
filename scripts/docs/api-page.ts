import { PRODUCTS } from '../../src/contract/products.ts'
import { RPC_METHODS } from '../../src/contract/rpc-methods.ts'
import { wsTicket } from '../../src/contract/schemas/customer.ts'
import { PAGES_PER_SECOND, USAGE_PAGES } from '../../src/gateway/account/endpoints.ts'
import { USAGE_DAYS_MAX } from '../../src/gateway/account/usage.ts'
import { MESSAGE_BYTES_MAX } from '../../src/gateway/pubsub/ws.ts'
import { executionSection } from './execution-section.ts'
import { indexerSection } from './indexer-section.ts'
import { GENERATED, table } from './markdown.ts'
import { senderSection } from './sender-section.ts'

/** Methods by their cost, the dearest first; the lowest cost is that of every other method. */
function costRows(): [number, string][] {
  const costs = [...new Set(Object.values(RPC_METHODS).map(({ cost }) => cost))].toSorted((a, b) => b - a)
  return costs.map((cost) => {
    const methods = Object.keys(RPC_METHODS).filter((method) => RPC_METHODS[method]?.cost === cost)
    return [cost, cost === 1 ? 'all others' : methods.map((method) => `\`${method}\``).join(', ')]
  })
}

export function apiPage(): string {
  return `${[
    '# Interfaces',
    GENERATED,
    '## Products',
    table(
      ['key', 'product', 'authorization', 'in this version'],
      Object.entries(PRODUCTS).map(([key, { title, authorization, available }]) => [
        `\`${key}\``,
        title,
        authorization,
        available ? 'yes' : 'coming soon',
      ]),
    ),
    '## Rules of every HTTP listener',
    'Paths match exactly, a slash at the end included: an unknown path is 404 `{"error":"not-found","message","paths"}`, where `paths` lists those that exist. A method that a path does not take is 405 `{"error":"method-not-allowed","message","methods"}` with `Allow`; `OPTIONS` is 204 on every path. JSON bodies need `Content-Type: application/json` or `application/json-rpc`, with or without parameters; the header may be missing unless the request has an `Origin`. Another content type, or a content encoding that is not supported, is 415 with -32415. A batch of too many calls is 413 with -32413; `data.limit` is `batchItems` and `data.size` its size.',
    '## Bundle: RPC (8899)',
    'JSON-RPC 2.0 in a POST to `/`, `Content-Type: application/json`. The token goes in `x-token`, `Authorization: Bearer`, `x-api-key`, or the query as `api-key` or `api_key` (prefer headers: proxies log queries). Every response has `x-request-id`; to a valid token also `x-ratelimit-limit`, `-remaining`, `-reset` (seconds) and `-cost`, the units that stay charged. `"params":null` is the same as no parameters.',
    table(
      ['method', 'path', 'token', 'response'],
      [
        [
          'POST',
          '/',
          'yes',
          'the response of the node, or a refusal; each call of a batch is charged and refused separately',
        ],
        ['GET', '/health', 'no', '`ok`, `behind` or `unknown`, as text'],
        ['GET', '/docs/', 'no', 'the documents, a page for each error, API descriptions, proto files; also on 8443'],
        [
          'GET',
          '/v1/whoami',
          'yes',
          'for every product: plan, limits, budget, what is left of each limit per second, month, open connections of the caller',
        ],
        [
          'GET',
          '/v1/connections',
          'yes',
          "the caller's open WebSockets and gRPC streams: id, interface, since, address, subscriptions or filters, bytes sent",
        ],
        [
          'GET',
          '/v1/account',
          'yes',
          'the same, with the state of the token (a replaced one and its end) and the addresses of the services',
        ],
        [
          'GET',
          '/v1/usage',
          'yes',
          `usage of the caller: \`since\`, \`until\` or \`month\`, \`by\` (${Object.keys(USAGE_DAYS_MAX)
            .map((by) => `\`${by}\``)
            .join(
              ', ',
            )}), \`format\` (\`json\`, \`csv\`, or Accept: text/csv); at most ${USAGE_DAYS_MAX.day} days, ${USAGE_DAYS_MAX.total} with by=total (\`usagePeriodDays\`); not charged, but one costs ${USAGE_PAGES} of the ${PAGES_PER_SECOND} account requests a second (\`pagesPerSecond\`)`,
        ],
        [
          'GET',
          '/v1/shreds',
          'yes',
          'with ShredStream Raw: the destination, and what was sent to it in the last 24 hours',
        ],
        [
          'GET',
          '/account',
          'no',
          'the page for customers: usage, limits, connections; `bundle.accountPage = false` turns it off',
        ],
        ['POST', '/v1/connections/{id}/close', 'yes', 'closes one of them; 404 for every other id'],
        [
          'POST',
          '/v1/geyser/check',
          'yes',
          'checks a SubscribeRequest in JSON against the plan without opening a stream: allowed or not, filter and rule, counts; not charged. The text may be as large as a message of a stream, up to 1 MiB',
        ],
        [
          'POST',
          '/v1/ws-ticket',
          'yes',
          `\`{${Object.keys(wsTicket.shape)
            .map((name) => `"${name}"`)
            .join(
              ',',
            )}}\`, valid for 60 s, for clients that cannot set WebSocket headers; \`url\` is the address of the WebSocket with the ticket in it, where the public address is known`,
        ],
      ],
    ),
    '### Cost of calls',
    'Every call, WebSocket request and gRPC call costs units of one budget. It refills by `unitsPerSecond` and holds ten seconds of it, so `x-ratelimit-limit` is ten times the rate of the plan. `sendTransaction` also counts for `sendsPerSecond`; what is left of it and of limits of single methods is in `rate_limits` of `/v1/whoami`. A plan may set other costs; `limits.methods` of `/v1/whoami` lists them.',
    table(['units', 'methods'], costRows()),
    '## Bundle: WebSocket (8900)',
    `The PubSub methods of a Solana node. The token goes in \`x-token\` or \`Authorization: Bearer\` at the handshake; clients that cannot set headers use a ticket, \`?ticket=…\`. A refused handshake is HTTP 401 or 429, with the same body as on RPC: \`data.reason\`, \`data.found\` (where the request has a token) and \`data.fix\`. Subscription ids are per client and stay the same when the upstream node changes; with \`?gaps=1\` such a change is reported by \`gapNotification\`. \`getRateLimits\` returns the budget and what is left of each limit per second. Messages that are not charged, because they are refused or name no method, are handled 1000 at once and 500 a second for a subscription: beyond that its connections are not read for a while (limit \`freeMessages\`), so that later calls wait. Close codes: 4401 token revoked or expired, 1013 too slow, 1012 restart, 1008 more than ten pings a second, 1009 a message of more than ${MESSAGE_BYTES_MAX} bytes, 1000 closed by its owner, never on an error.`,
    '## Bundle: gRPC (10010)',
    '`geyser.Geyser` with the token in the metadata `x-token` or `authorization`. Refused tokens are `PERMISSION_DENIED`, with reason and fix in the message, limits of rate and number `RESOURCE_EXHAUSTED`, requests that are too large `INVALID_ARGUMENT` naming the limit, filters over the plan `INVALID_ARGUMENT` naming filter and rule. The budget is sent as initial metadata under the names of the RPC headers. When the upstream node of a stream is lost, the stream ends with `UNAVAILABLE` and the last slot seen, or, if the plan has `grpcResume`, continues on another node from about 40 slots before: nothing is missing, updates may be repeated, and banks of the lost node that are not final are declared dead by slot updates (for requests with a `slots` filter). `grpc.health.v1.Health` (Check, Watch) needs no token. Server reflection (`grpc.reflection.v1` and `v1alpha`) needs the token and is charged like a call for each request.',
    ...indexerSection(),
    ...senderSection(),
    ...executionSection(),
    '## Operator metrics listener',
    table(
      ['method', 'path', 'response'],
      [
        [
          'GET',
          '/metrics',
          'Prometheus text, or OpenMetrics if the Accept header requests it; see [metrics.md](metrics.md)',
        ],
        ['GET', '/healthz', '200 while the process runs: `state`, `ready`, `uptime_seconds`, `reasons`'],
        ['GET', '/readyz', 'the same body; 200 when the process is ready, 503 while starting and draining'],
      ],
    ),
    '## Errors',
    'All errors of Sluice are in [errors.md](errors.md), with their status in each protocol.',
  ].join('\n\n')}\n`
}
