import * as schemas from '../../../src/contract/schemas/customer.ts'
import { INFO, json, NO_TOKEN, type OpenApi, pathParameter, queryParameter, ref, rpcResponse, rpcRequestBody, schemaOf, text } from './document.ts'

const CALL = (operationId: string, summary: string) => ({
  operationId,
  summary,
  description: 'Methods: sendTransaction, getTipAccounts, getHealth, getVersion. Preflight is never run.',
  security: NO_TOKEN,
  requestBody: rpcRequestBody('getTipAccounts'),
  responses: {
    '200': rpcResponse('The signature, or a JSON-RPC error with the reason.'),
    '413': json('The body or the batch is too large.', 'RpcResponse'),
    '415': json('The content type is not JSON, or the body is compressed.', 'RpcResponse'),
    '429': json('The rate limit of the address or fee payer is reached.', 'RpcResponse'),
  },
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
            '200': text('The signature.'),
            '400': text('Why the transaction is refused.'),
            '429': text('The rate limit of the address or fee payer is reached.'),
            '503': text('No send path is available.'),
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
            '400': json('Not a signature.', 'PageError'),
            '404': json('The signature is unknown.', 'PageError'),
          },
        },
      },
      '/tips': {
        get: {
          operationId: 'tips',
          summary: 'Tip accounts and minimum tip',
          security: NO_TOKEN,
          responses: { '200': json('The terms.', 'TipTerms'), '405': json('Use GET.', 'PageError') },
        },
      },
      '/ping': {
        get: {
          operationId: 'ping',
          summary: 'Keeps a connection warm',
          security: NO_TOKEN,
          responses: { '200': text('`ok`'), '405': json('Use GET.', 'PageError') },
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
