import { ERRORS } from '../../contract/errors.ts'
import { idKind, type RequestItem, readRequestBody, writeError } from '../../solana/json/json-rpc.ts'

/** JSON nested deeper than this is refused before anything is parsed. */
export const JSON_DEPTH_MAX = 32

/** One call of a body, as the client wrote it. */
export type RpcCall = {
  readonly method: string
  /** The method as a JSON string without needless escapes: the node gets the name that was charged. */
  readonly methodText: string
  /** Raw text of the params member. */
  readonly paramsText: string | undefined
  /** Raw text of the id; undefined makes it a notification, which gets no answer. */
  readonly id: string | undefined
}

export type RpcItem = { readonly call: RpcCall } | { readonly refusal: string }

/** A body by the text of JSON-RPC 2.0, which is where the gateway follows the specification and not a particular node. */
export type RpcBody =
  | { readonly kind: 'calls'; readonly batch: boolean; readonly items: readonly RpcItem[] }
  | { readonly kind: 'refused'; readonly response: string }
  | { readonly kind: 'too-many'; readonly limit: number }

export function readRpcBody(text: string, limits: { readonly batchItems: number }): RpcBody {
  const body = readRequestBody(text, { depthMax: JSON_DEPTH_MAX, batchItemsMax: limits.batchItems })
  if (!body.ok) {
    if (body.reason === 'batch-too-long') return { kind: 'too-many', limit: limits.batchItems }
    return { kind: 'refused', response: refusal('parse-error', 'null') }
  }
  if (body.items.length === 0) return { kind: 'refused', response: refusal('invalid-request', 'null') }
  return { kind: 'calls', batch: body.batch, items: body.items.map(validate) }
}

/** The call as an upstream gets it: the members it knows and no other. */
export function writeCall(call: Pick<RpcCall, 'methodText' | 'paramsText'>, id: string | undefined): string {
  const params = call.paramsText === undefined ? '' : `,"params":${call.paramsText}`
  return `{"jsonrpc":"2.0"${id === undefined ? '' : `,"id":${id}`},"method":${call.methodText}${params}}`
}

/** A whole number that no program rounds, or a short string of characters that no program escapes. */
const FAST_PATH_ID = /^(?:0|[1-9]\d{0,14}|"[\w .:=@+-]{0,64}")$/

/** Whether every node takes this id and gives it back byte for byte. Others are sent under a number of ours and put back into the response. */
export function isFastPathId(id: string): boolean {
  return FAST_PATH_ID.test(id)
}

function validate(item: RequestItem): RpcItem {
  const { isObject, jsonrpc, id, params, method, methodName, duplicate } = item
  const echoed = id !== undefined && idKind(id) !== 'other' && duplicate !== 'id' ? id : 'null'
  const isWell =
    isObject &&
    duplicate === undefined &&
    jsonrpc === '"2.0"' &&
    method !== undefined &&
    methodName !== undefined &&
    (id === undefined || idKind(id) !== 'other') &&
    (params === undefined || params.startsWith('[') || params.startsWith('{'))
  if (!isWell) return { refusal: refusal('invalid-request', echoed) }
  return { call: { method: methodName, methodText: JSON.stringify(methodName), paramsText: params, id } }
}

function refusal(code: 'parse-error' | 'invalid-request', id: string): string {
  const { jsonRpc, sentence } = ERRORS[code]
  return writeError(id, { code: jsonRpc, message: sentence })
}
