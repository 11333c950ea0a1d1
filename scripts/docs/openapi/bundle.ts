import * as schemas from '../../../src/contract/schemas/customer.ts'
import { USAGE_PAGES } from '../../../src/gateway/account/endpoints.ts'
import { USAGE_DAYS_MAX } from '../../../src/gateway/account/usage.ts'
import {
  ANY_TOKEN,
  INFO,
  json,
  NO_RESPONSES,
  NO_TOKEN,
  type OpenApi,
  type Operation,
  pathParameter,
  queryParameter,
  RETRY_AFTER,
  rpcResponse,
  rpcRequestBody,
  schemaOf,
  TOKEN_SCHEMES,
  text,
} from './document.ts'

/** A plan without limits has `unlimited` in the place of numbers. */
const UNITS = { anyOf: [{ type: 'integer' }, { const: 'unlimited' }] }
const BUDGET_HEADERS = {
  headers: {
    'x-request-id': { schema: { type: 'string' }, description: 'Id of this request, for the operator.' },
    'x-ratelimit-limit': { schema: UNITS, description: 'Size of the budget with the least remaining share.' },
    'x-ratelimit-remaining': { schema: UNITS, description: 'Units left in this budget.' },
    'x-ratelimit-reset': { schema: { type: 'integer' }, description: 'Seconds until the budget is full again.' },
    'x-ratelimit-cost': { schema: { type: 'integer' }, description: 'Cost of this request in units.' },
  },
}

const REFUSED = {
  '401': json('No valid token: a JSON-RPC error, as of a call.', 'RpcResponse'),
  '429': json('A limit of the plan is reached; the body names it.', 'PageError', RETRY_AFTER),
}

const page = (
  operationId: string,
  summary: string,
  more: Partial<Operation> & Pick<Operation, 'responses'>,
): Operation => ({
  operationId,
  summary,
  security: ANY_TOKEN,
  ...more,
  responses: { ...more.responses, ...REFUSED },
})

/** The RPC endpoint. */
export function bundleOpenApi(): OpenApi {
  return {
    openapi: '3.1.0',
    info: INFO('Sluice: Solana RPC', 'JSON-RPC of Solana nodes, and account information for the customer.'),
    servers: [{ url: 'http://127.0.0.1:8899', description: 'Local default; your URL is on your handover card.' }],
    paths: {
      '/': {
        post: {
          operationId: 'call',
          summary: 'One JSON-RPC call, or a batch of them',
          description:
            'Forwarded to a node; the response of the node is returned unchanged. Each call of a batch is charged and refused separately. A refusal by Sluice is a JSON-RPC error with `data.request_id` and `data.docs_url`.',
          security: [...ANY_TOKEN, { apiKey: [] }],
          requestBody: rpcRequestBody('getSlot'),
          responses: {
            '200': rpcResponse('The response, or a JSON-RPC error.', BUDGET_HEADERS),
            '204': NO_RESPONSES,
            '401': json('No valid token.', 'RpcResponse'),
            '413': json('The body or the batch is larger than the plan allows.', 'RpcResponse'),
            '415': json('The content type or encoding is not supported.', 'RpcResponse'),
            '429': rpcResponse('A limit of the plan is reached: by the only call, or by every call of a batch.', RETRY_AFTER),
            '503': rpcResponse('No upstream node is available. Not charged.', RETRY_AFTER),
            '504': rpcResponse('The node did not respond in time.'),
          },
        },
      },
      '/health': {
        get: {
          operationId: 'health',
          summary: 'Whether calls are served',
          security: NO_TOKEN,
          responses: {
            '200': text('`ok`, `behind` or `unknown`.'),
            '405': json('Use GET.', 'PageError'),
            '429': json('Too many health requests of one address.', 'PageError', RETRY_AFTER),
          },
        },
      },
      '/docs': {
        get: {
          operationId: 'documents',
          summary: 'The documents: pages, errors, API descriptions, proto files',
          description: 'The index. Everything it links to is served under this path, with ETag, for any origin.',
          security: NO_TOKEN,
          responses: {
            '200': text('The page.', 'text/html'),
            '304': { description: 'The client has the current version.' },
            '405': json('Use GET.', 'PageError'),
            '429': json('Too many documents for one address.', 'PageError', RETRY_AFTER),
          },
        },
      },
      '/v1/whoami': {
        get: page('whoami', 'Plan, limits, budget and open connections of the caller', {
          responses: { '200': json('The caller.', 'Whoami') },
        }),
      },
      '/v1/connections': {
        get: page('listConnections', "The caller's open WebSockets and gRPC streams", {
          responses: { '200': json('Oldest first.', 'ConnectionList') },
        }),
      },
      '/v1/connections/{id}/close': {
        post: page('closeConnection', 'Close one of them', {
          parameters: [pathParameter('id', 'Id from the list.')],
          responses: {
            '200': json('The connection is being closed.', 'ConnectionClosed'),
            '404': json('The caller has no connection with this id.', 'PageError'),
          },
        }),
      },
      '/v1/ws-ticket': {
        post: page('issueTicket', 'A ticket that opens a WebSocket for clients that cannot set headers', {
          responses: { '200': json('Valid for 60 s.', 'WsTicket') },
        }),
      },
      '/v1/decoded/report': {
        get: page('decodedReport', 'ShredStream Decoded: what was delivered and lost of the newest slots', {
          responses: {
            '200': json('Since the start of the engine.', 'DecodedReport'),
            '404': json('Decoded shreds are not served here.', 'PageError'),
          },
        }),
      },
      '/v1/account': {
        get: page('account', 'Subscription, limits, budget, tokens and addresses of the caller, for any product', {
          responses: { '200': json('The account.', 'Account') },
        }),
      },
      '/v1/usage': {
        get: page('usage', 'Usage of the caller by day, hour, method or in total, as JSON or CSV', {
          description: `Costs as much as ${USAGE_PAGES} requests of the other account endpoints. Unknown parameters are refused.`,
          parameters: [
            queryParameter('since', 'Its first day (`2026-11-01`), or a time span before now (`7d`). The last 30 days by default.'),
            queryParameter('until', 'Its last day, or a time span before now. Now by default.'),
            queryParameter('month', 'A calendar month in UTC, `2026-11`, instead of `since` and `until`.'),
            queryParameter('by', `\`day\` by default. At most ${USAGE_DAYS_MAX.day} days; with \`total\` at most ${USAGE_DAYS_MAX.total}.`, {
              type: 'string',
              enum: Object.keys(USAGE_DAYS_MAX),
            }),
            queryParameter('format', '`json` by default, or `csv`; `Accept: text/csv` is the same.', {
              type: 'string',
              enum: ['json', 'csv'],
            }),
          ],
          responses: {
            '200': json('The usage.', 'Usage'),
            '400': json('A parameter is not valid, or the period is too long.', 'PageError'),
            '503': json('The usage cannot be read now.', 'PageError', RETRY_AFTER),
          },
        }),
      },
      '/v1/shreds': {
        get: page('shreds', 'ShredStream Raw: the destination, and what was sent to it in the last 24 hours', {
          responses: {
            '200': json('The destination.', 'Shreds'),
            '503': json('The report cannot be read now.', 'PageError', RETRY_AFTER),
          },
        }),
      },
      '/account': {
        get: {
          operationId: 'accountPage',
          summary: 'The page for customers: usage, limits, connections and addresses',
          description: 'Static: the token is typed on the page and is sent to the account endpoints only.',
          security: NO_TOKEN,
          responses: {
            '200': text('The page.', 'text/html'),
            '304': { description: 'The client has the current version.' },
            '405': json('Use GET.', 'PageError'),
            '429': json('Too many documents for one address.', 'PageError', RETRY_AFTER),
          },
        },
      },
      '/v1/geyser/check': {
        post: page('checkGeyser', 'Check whether a SubscribeRequest is allowed, without opening a stream', {
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: { type: 'object', description: "A SubscribeRequest in protobuf's JSON form." },
                example: { slots: { all: {} } },
              },
            },
          },
          responses: {
            '200': json('The result; nothing is charged.', 'GeyserCheck'),
            '400': json('Not a SubscribeRequest.', 'PageError'),
            '413': json('The body is too large.', 'RpcResponse'),
            '415': json('The content type is not JSON.', 'RpcResponse'),
          },
        }),
      },
    },
    components: {
      securitySchemes: TOKEN_SCHEMES,
      schemas: {
        RpcRequest: schemaOf(schemas.rpcRequest),
        RpcResponse: schemaOf(schemas.rpcResponse),
        Whoami: schemaOf(schemas.whoamiRecord),
        ConnectionList: schemaOf(schemas.connectionList),
        ConnectionClosed: schemaOf(schemas.connectionClosed),
        WsTicket: schemaOf(schemas.wsTicket),
        DecodedReport: schemaOf(schemas.decodedReport),
        Account: schemaOf(schemas.accountRecord),
        Usage: schemaOf(schemas.usageReport),
        Shreds: schemaOf(schemas.shredsReport),
        GeyserCheck: schemaOf(schemas.geyserCheck),
        PageError: schemaOf(schemas.pageError),
      },
    },
  }
}
