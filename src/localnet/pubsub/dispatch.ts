import { idKind, type RequestItem, readRequestBody, writeError, writeResult } from '../../solana/json/json-rpc.ts'
import { internalError, invalidRequest, methodNotFound, parseError, RpcError } from '../rpc/errors.ts'
import { type Json, writeJson } from '../rpc/json.ts'

/** A method of one connection: takes the raw text of its params, returns the result or throws RpcError. */
export type PubSubMethod = (params: string | undefined) => Json

export type DispatchDeps = {
  readonly method: (name: string) => PubSubMethod | undefined
  readonly onFault: (error: unknown) => void
}

/** serde_json refuses a value nested 128 deep. */
const DEPTH_MAX = 127
/** More items than a message of 4096 bytes can hold. */
const BATCH_ITEMS_MAX = 2048

/** The response to a message as jsonrpc-core makes it. Undefined for notifications, such as the `ping` of clients. */
export function respondToMessage(text: string, deps: DispatchDeps): string | undefined {
  const body = readRequestBody(text, { depthMax: DEPTH_MAX, batchItemsMax: BATCH_ITEMS_MAX })
  if (!body.ok || !body.items.every(isReadable)) return fail('null', parseError())
  const responses = body.items.map((item) => respondToItem(item, deps)).filter((response) => response !== undefined)
  if (!body.batch) return responses[0]
  return responses.length === 0 ? undefined : `[${responses.join(',')}]`
}

function isReadable({ isObject, id, duplicate }: RequestItem): boolean {
  return isObject && duplicate !== 'id' && (id === undefined || ['null', 'string', 'u64'].includes(idKind(id)))
}

function respondToItem(item: RequestItem, deps: DispatchDeps): string | undefined {
  const { id, methodName, jsonrpc } = item
  if (!isRequest(item) || methodName === undefined) return fail(id ?? 'null', invalidRequest())
  if (id === undefined) return undefined
  if (jsonrpc === undefined || jsonrpc === 'null') {
    return fail(id, invalidRequest('Unsupported JSON-RPC protocol version'))
  }
  try {
    const method = deps.method(methodName)
    if (!method) throw methodNotFound()
    return writeResult(id, writeJson(method(item.params === 'null' ? undefined : item.params)))
  } catch (error) {
    if (error instanceof RpcError) return fail(id, error)
    deps.onFault(error)
    return fail(id, internalError())
  }
}

function isRequest({ jsonrpc, params, duplicate, hasUnknownMember }: RequestItem): boolean {
  if (duplicate !== undefined || hasUnknownMember) return false
  if (jsonrpc !== undefined && jsonrpc !== 'null' && jsonrpc !== '"2.0"') return false
  return params === undefined || params === 'null' || /^[[{]/.test(params)
}

function fail(id: string, { code, message, data }: RpcError): string {
  return writeError(id, { code, message, data: data === undefined ? undefined : writeJson(data) })
}
