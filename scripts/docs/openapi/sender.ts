import * as schemas from '../../../src/contract/schemas/customer.ts'
import { INFO, json, NO_TOKEN, type OpenApi, pathParameter, queryParameter, rpcResponse, rpcRequestBody, schemaOf, text } from './document.ts'

const CALL = (operationId: string, summary: string) => ({
  operationId,
  summary,
  description: 'Methods: sendTransaction, getTipAccounts, getHealth, getVersion. Preflight is never run.',
  security: NO_TOKEN,
  requestBody: rpcRequestBody('getTipAccounts'),
  responses: {
    '200': rpcResponse('The signature, or a JSON-RPC error that says what is wrong with the transaction.'),
    '429': json('More than this address or fee payer may send now.', 'RpcResponse'),
  },
})

/** The open door of the sender. */
export function senderOpenApi(): OpenApi {
  return {
    openapi: '3.1.0',
    info: INFO(
      'Sluice: TPU Sender',
      'Tipped transactions in, landed transactions out, with a receipt. The tip is the ticket.',
    ),
    servers: [{ url: 'http://127.0.0.1:8901', description: 'A local start.' }],
    paths: {
      '/': { post: CALL('sendByRpc', 'One JSON-RPC call, or a batch of them') },
      '/fast': { post: CALL('sendByRpcFast', 'The same under the name that other senders use') },
      '/api/v1/transactions': {
        post: {
          operationId: 'sendBytes',
          summary: 'One signed transaction',
          security: NO_TOKEN,
          parameters: [queryParameter('response', '`none` for an empty answer.', { type: 'string', enum: ['none'] })],
          requestBody: {
            required: true,
            content: {
              'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
              'text/plain': { schema: { type: 'string', description: 'The bytes as base64 or base58.' } },
            },
          },
          responses: {
            '200': text('The signature.'),
            '400': text('What is wrong with it.'),
            '429': text('More than this address or fee payer may send now.'),
            '503': text('No path can take it now.'),
          },
        },
      },
      '/v1/transactions/{signature}': {
        get: {
          operationId: 'receipt',
          summary: 'What became of a transaction',
          security: NO_TOKEN,
          parameters: [
            pathParameter('signature', 'Its first signature.'),
            queryParameter('wait', 'Answer when it is final, or after so many seconds.', {
              type: 'integer',
              minimum: 0,
              maximum: 60,
            }),
          ],
          responses: {
            '200': json('The receipt. Kept for 10 minutes.', 'Receipt'),
            '400': json('Not a signature.', 'PageError'),
            '404': json('Nothing of this signature is known.', 'PageError'),
          },
        },
      },
      '/tips': {
        get: {
          operationId: 'tips',
          summary: 'Where to pay the tip, and how much',
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
