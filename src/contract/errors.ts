import type { ErrorEntry } from './error-entry.ts'
import { OPERATOR_ERRORS } from './operator-errors.ts'

/** Errors that a client of a service can receive. */
const SERVER_ERRORS = {
  unauthorized: {
    http: 401,
    jsonRpc: -32401,
    grpc: 7,
    close: 4401,
    sentence: 'The request carries no valid token for this product.',
    fix: 'Send the token of your subscription in the header x-token or Authorization: Bearer; data.reason gives the cause.',
    retryable: false,
  },
  'rate-limited': {
    http: 429,
    jsonRpc: -32429,
    grpc: 8,
    close: 4429,
    sentence: 'A limit of the subscription is reached; the call was not forwarded and not charged.',
    fix: 'Retry after the time given, or ask the operator for a larger plan; data.limit names the limit.',
    retryable: true,
  },
  'too-large': {
    http: 413,
    jsonRpc: -32413,
    grpc: 3,
    close: 1009,
    sentence: 'The request is larger than the limit.',
    fix: 'Send a smaller request; data names the limit and its size, which is null for the limit of a node (nodeRequestBytes).',
    retryable: false,
  },
  'response-too-large': {
    jsonRpc: -32513,
    sentence: 'The response is larger than a WebSocket may carry; the call was forwarded and charged.',
    fix: 'Request it over HTTP, or request less at once; data names the limit and its size.',
    retryable: false,
  },
  'parse-error': {
    http: 200,
    jsonRpc: -32700,
    grpc: 3,
    close: 1007,
    sentence: 'Parse error',
    fix: 'Send well-formed JSON in UTF-8, not nested deeper than 32.',
    retryable: false,
  },
  'invalid-request': {
    http: 200,
    jsonRpc: -32600,
    grpc: 3,
    close: 1008,
    sentence: 'Invalid request',
    fix: 'Send an object with jsonrpc "2.0", a method name, and an id.',
    retryable: false,
  },
  'method-not-found': {
    http: 200,
    jsonRpc: -32601,
    grpc: 12,
    sentence: 'Method not found',
    fix: 'Check the method name; /docs/api of the RPC endpoint lists what is served.',
    retryable: false,
  },
  'invalid-params': {
    http: 200,
    jsonRpc: -32602,
    grpc: 3,
    close: 1008,
    sentence: 'Invalid params',
    fix: 'Correct the parameter that data names.',
    retryable: false,
  },
  'not-found': {
    http: 404,
    grpc: 5,
    exit: 1,
    sentence: 'The requested resource does not exist.',
    fix: 'Check the name or id; list commands and /docs/api of the RPC endpoint show what exists.',
    retryable: false,
  },
  'method-not-allowed': {
    http: 405,
    sentence: 'This path does not support the HTTP method.',
    fix: 'Use a method that the Allow header names.',
    retryable: false,
  },
  'unsupported-media-type': {
    http: 415,
    jsonRpc: -32415,
    sentence: 'The content type or content encoding of the body is not supported.',
    fix: 'Send JSON with Content-Type: application/json, uncompressed or with gzip where the listener accepts it.',
    retryable: false,
  },
  'blocks-not-held': {
    http: 200,
    jsonRpc: -32000,
    sentence: 'The execution service does not hold these blocks.',
    fix: 'Request blocks inside the range in data; an archive node has older ones.',
    retryable: false,
  },
  'replay-too-old': {
    grpc: 11,
    sentence: 'The stream cannot start that far back.',
    fix: 'Start from a slot inside the replay window; SubscribeReplayInfo returns the first one.',
    retryable: false,
  },
  'tip-missing': {
    http: 200,
    jsonRpc: -32040,
    sentence: 'The transaction has no tip to one of the tip accounts.',
    fix: 'Add a System Program transfer of at least data.minTipLamports to one of data.tipAccounts.',
    retryable: false,
  },
  'tip-too-small': {
    http: 200,
    jsonRpc: -32041,
    sentence: 'The tip of the transaction is below the minimum.',
    fix: 'Raise one transfer to at least data.minTipLamports; several are not added up.',
    retryable: false,
  },
  'tip-through-lookup-table': {
    http: 200,
    jsonRpc: -32042,
    sentence: 'The tip account is named only through an address lookup table.',
    fix: 'Put the tip account among the static account keys.',
    retryable: false,
  },
  'blockhash-expired': {
    http: 200,
    jsonRpc: -32043,
    sentence: 'The blockhash of the transaction is too old to land.',
    fix: 'Sign again with a fresh blockhash.',
    retryable: false,
  },
  'payer-cannot-pay': {
    http: 200,
    jsonRpc: -32044,
    sentence: 'The fee payer of the transaction cannot pay its fee and tip.',
    fix: 'Fund data.payer with at least data.requiredLamports and send again after a second; data.reason gives the cause.',
    retryable: false,
  },
  'nonce-invalid': {
    http: 200,
    jsonRpc: -32045,
    sentence: 'The nonce of the transaction differs from the one in its nonce account.',
    fix: 'Read the nonce of data.nonceAccount again and sign with it, using its authority; data.reason gives the cause.',
    retryable: false,
  },
  // The codes and meanings of the next two are Solana's own (rpc-client-api, custom_error).
  'signature-invalid': {
    http: 200,
    jsonRpc: -32003,
    sentence: 'Transaction signature verification failure',
    fix: 'Sign exactly the bytes that are sent, with every key that the header requires.',
    retryable: false,
  },
  'signature-count': {
    http: 200,
    jsonRpc: -32013,
    sentence: 'Transaction signature length mismatch',
    fix: 'Send one signature for each key that the header requires, between 1 and 12.',
    retryable: false,
  },
  'no-path': {
    http: 200,
    jsonRpc: -32503,
    sentence: 'No path to a leader is open, so the transaction was not sent.',
    fix: 'Retry in a few seconds; nothing was sent.',
    retryable: true,
  },
  'not-recorded': {
    http: 200,
    jsonRpc: -32503,
    sentence: 'Accepted transactions cannot be recorded at the moment.',
    fix: 'Retry in a few seconds; data.sent is true if this transaction was sent nevertheless.',
    retryable: true,
  },
  'no-upstream': {
    http: 503,
    jsonRpc: -32503,
    grpc: 14,
    close: 1013,
    exit: 69,
    sentence: 'No healthy upstream node can take the call.',
    fix: 'Retry after the time given.',
    retryable: true,
  },
  'not-assigned': {
    http: 503,
    jsonRpc: -32503,
    grpc: 14,
    close: 1013,
    sentence: 'No node is assigned to this dedicated-node subscription; the call was not forwarded and not charged.',
    fix: 'Ask the operator to assign the node; GET /v1/whoami lists it under dedicated_nodes as soon as it is.',
    retryable: true,
  },
  'upstream-timeout': {
    http: 504,
    jsonRpc: -32504,
    grpc: 4,
    sentence: 'The upstream node did not respond in time.',
    fix: 'Retry; a write may have been executed, so check its effect first.',
    retryable: true,
  },
  overloaded: {
    http: 503,
    jsonRpc: -32503,
    grpc: 14,
    close: 1013,
    sentence: 'The limit for buffered bytes of requests and responses is reached.',
    fix: 'Read responses as they arrive, request less at once, and retry after the time given; data.limit names the limit. data.charged is true if the call was forwarded and charged, and only its response was dropped.',
    retryable: true,
  },
  draining: {
    http: 503,
    jsonRpc: -32503,
    grpc: 14,
    close: 1012,
    sentence: 'The server is shutting down or restarting.',
    fix: 'Reconnect after the time given.',
    retryable: true,
  },
  internal: {
    http: 500,
    jsonRpc: -32603,
    grpc: 13,
    close: 1011,
    exit: 1,
    sentence: 'An internal error occurred.',
    fix: 'Report the time of the request to the operator; the log contains the cause.',
    retryable: true,
  },
} as const satisfies Record<string, ErrorEntry>

export const ERRORS = { ...SERVER_ERRORS, ...OPERATOR_ERRORS }

export type ErrorCode = keyof typeof ERRORS

/** Why a token was refused. The status and headers are the same for all of them. */
export const TOKEN_REFUSALS = [
  'missing',
  'malformed',
  'unknown',
  'revoked',
  'expired',
  'suspended',
  'cancelled',
  'conflicting',
  'not-in-plan',
] as const

export type TokenRefusal = (typeof TOKEN_REFUSALS)[number]

/** The entry of a code; unknown codes are internal errors. */
export function errorEntry(code: string): ErrorEntry {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode] : ERRORS.internal
}

/** The URL of the page of an error; undefined where no address of the documents is known. */
export type DocsUrl = (code: string) => string | undefined

/** What an error contains besides its cause. */
export type ErrorContext = { readonly requestId: string; readonly docsUrl?: DocsUrl | undefined }
