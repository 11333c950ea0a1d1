import * as schemas from '../../../src/contract/schemas/customer.ts'
import {
  INFO,
  json,
  NO_RESPONSES,
  NO_TOKEN,
  type OpenApi,
  pathParameter,
  queryParameter,
  RETRY_AFTER,
  ref,
  rpcRequestBody,
  rpcResponse,
  schemaOf,
  text,
} from './document.ts'

const CALL = (operationId: string, summary: string) => ({
  operationId,
  summary,
  description: 'Methods: sendTransaction, getTipAccounts, getHealth, getVersion. Preflight is never run.',
  security: NO_TOKEN,
  requestBody: rpcRequestBody('getTipAccounts'),
  responses: {
    '200': rpcResponse('The signature, or a JSON-RPC error with the reason.'),
    '204': NO_RESPONSES,
    '413': json('The body or the batch is too large.', 'RpcResponse'),
    '415': json('The content type is not JSON, or the body is compressed.', 'RpcResponse'),
    '429': rpcResponse('The rate limit of the address or fee payer is reached.', RETRY_AFTER),
  },
})
const TOO_MANY = json('The rate limit of the address is reached.', 'PageError', RETRY_AFTER)

/** A path that takes a transaction alone and JSON-RPC: a refusal has the form of the request. */
const anyForm = (description: string, more: object = {}) => ({
  description,
  ...more,
  content: { 'application/json': { schema: { anyOf: [ref('PageError'), ref('RpcResponse')] } } },
})

/** The endpoint of the sender. */
export function senderOpenApi(): OpenApi {
  return {
    openapi: '3.1.0',
    info: INFO(
      'Sluice: TPU Sender',
      'Submission of tipped transactions, with receipts. No token is needed.',
    ),
    servers: [{ url: 'http://127.0.0.1:8901', description: 'Local default.' }],
    paths: {
      '/': { post: CALL('sendByRpc', 'One JSON-RPC call, or a batch of them') },
      '/fast': { post: CALL('sendByRpcFast', 'The same, under the path that other senders use') },
      '/api/v1/transactions': {
        post: {
          operationId: 'sendBytes',
          summary: 'One signed transaction',
          security: NO_TOKEN,
          parameters: [
            queryParameter('bundleOnly', 'Refused unless `false`: bundles are not sent here.', { type: 'boolean' }),
            queryParameter('response', '`none` for an empty response.', { type: 'string', enum: ['none'] }),
          ],
          requestBody: {
            required: true,
            content: {
              'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
              'text/plain': { schema: { type: 'string', description: 'The bytes as base64 or base58.' } },
              'application/json': { schema: ref('RpcRequest') },
            },
          },
          responses: {
            '200': {
              description: 'The signature; nothing with `response=none`. Of a JSON-RPC call its response, also where it is refused.',
              content: {
                'text/plain': { schema: { type: 'string' } },
                'application/json': { schema: ref('RpcResponse') },
              },
            },
            '204': NO_RESPONSES,
            '400': json('Why the transaction is refused.', 'PageError'),
            '413': json('The body is too large.', 'RpcResponse'),
            '415': anyForm('The content type is not supported, or the body is compressed.'),
            '429': anyForm('The rate limit of the address or fee payer is reached.', RETRY_AFTER),
            '503': json('No send path is available, or nothing can be recorded.', 'PageError', RETRY_AFTER),
          },
        },
      },
      '/api/v1/bundles': { post: CALL('bundles', 'JSON-RPC as libraries for block engines send it: getTipAccounts; bundle methods are refused by name') },
      '/api/v1/getTipAccounts': { post: CALL('tipAccountsByRpc', 'The same') },
      '/api/v1/getBundleStatuses': { post: CALL('bundleStatuses', 'Refused by name: bundles are not sent here') },
      '/api/v1/getInflightBundleStatuses': {
        post: CALL('inflightBundleStatuses', 'Refused by name: bundles are not sent here'),
      },
      '/v1/transactions/{signature}': {
        get: {
          operationId: 'receipt',
          summary: 'State of a transaction',
          security: NO_TOKEN,
          parameters: [
            pathParameter('signature', 'The first signature of the transaction.'),
            queryParameter('wait', 'Respond when the state is final, or after this many seconds.', {
              type: 'integer',
              minimum: 0,
              maximum: 60,
            }),
          ],
          responses: {
            '200': json('The receipt. Kept for 10 minutes after its state is final, the last 50,000 of them.', 'Receipt'),
            '400': json('`wait` is not valid.', 'PageError'),
            '404': json('The signature is unknown, or none.', 'PageError'),
            '429': TOO_MANY,
          },
        },
      },
      '/tips': {
        get: {
          operationId: 'tips',
          summary: 'Tip accounts and minimum tip',
          security: NO_TOKEN,
          responses: { '200': json('The terms.', 'TipTerms'), '405': json('Use GET.', 'PageError'), '429': TOO_MANY },
        },
      },
      '/ping': {
        get: {
          operationId: 'ping',
          summary: 'Keeps a connection warm',
          security: NO_TOKEN,
          responses: { '200': text('`ok`'), '405': json('Use GET.', 'PageError'), '429': TOO_MANY },
        },
      },
    },
    components: {
      securitySchemes: {},
      schemas: {
        RpcRequest: schemaOf(schemas.rpcRequest),
        RpcResponse: schemaOf(schemas.rpcResponse),
        Receipt: schemaOf(schemas.receipt),
        TipTerms: schemaOf(schemas.tipTerms),
        PageError: schemaOf(schemas.pageError),
      },
    },
  }
}
