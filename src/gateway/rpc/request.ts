import { ERRORS } from '../../contract/errors.ts'
import { type RpcCall, readCalls } from '../../solana/json/json-rpc.ts'
import { errorResponse, type RefusableRequest } from '../refusal.ts'

export type RpcRequest = RefusableRequest & {
  /** Identifies the client: the slot it sees never goes back. */
  readonly connection: object
}

/** JSON nested deeper than this is refused before anything is parsed. */
export const JSON_DEPTH_MAX = 32

/** A call, or the response that refuses one, with its id as JSON. */
export type RpcItem = { readonly call: RpcCall } | { readonly refusal: string; readonly id: string }

export type RpcBody =
  | { readonly kind: 'calls'; readonly batch: boolean; readonly items: readonly RpcItem[] }
  | { readonly kind: 'refused'; readonly response: string }
  | { readonly kind: 'too-many'; readonly limit: number }

/** Splits a body into its calls. The gateway follows the JSON-RPC 2.0 specification, not a particular node. */
export function readRpcBody(text: string, limits: { readonly batchItems: number }, request: RefusableRequest): RpcBody {
  const body = readCalls(text, { depthMax: JSON_DEPTH_MAX, batchItemsMax: limits.batchItems })
  if (body.kind === 'batch-too-long') return { kind: 'too-many', limit: limits.batchItems }
  if (body.kind !== 'calls') return { kind: 'refused', response: bodyErrorText(body.kind, request) }
  const items = body.items.map((item) =>
    'call' in item ? item : { refusal: bodyErrorText('invalid-request', request, item.invalidId), id: item.invalidId },
  )
  return { kind: 'calls', batch: body.batch, items }
}

/** An integer that no program rounds, or a short string of characters that no program escapes. */
const FAST_PATH_ID = /^(?:0|[1-9]\d{0,14}|"[\w .:=@+-]{0,64}")$/

/** Whether every node accepts this id and returns it byte for byte. Other calls are forwarded under an id of the gateway. */
export function isFastPathId(id: string): boolean {
  return FAST_PATH_ID.test(id)
}

/** The refusal of what is no JSON or no call, with the message of the JSON-RPC 2.0 specification. */
export function bodyErrorText(code: 'parse-error' | 'invalid-request', request: RefusableRequest, id = 'null'): string {
  const { sentence, fix } = ERRORS[code]
  return errorResponse({ code, message: sentence, data: { fix } }, request, id)
}
