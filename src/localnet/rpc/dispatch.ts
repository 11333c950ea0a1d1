import { idKind, type RequestItem, readRequestBody, writeError, writeResult } from '../../solana/json/json-rpc.ts'
import type { RpcContext, RpcMethods } from './context.ts'
import { internalError, invalidRequest, methodNotFound, parseError, RpcError } from './errors.ts'
import { writeJson } from './json.ts'
import { accountMethods } from './methods/accounts.ts'
import { blockMethods } from './methods/blocks.ts'
import { clusterMethods } from './methods/cluster.ts'
import { feeMethods } from './methods/fees.ts'
import { leaderMethods } from './methods/leaders.ts'
import { sendMethods } from './methods/send.ts'
import { tokenMethods } from './methods/tokens.ts'
import { transactionMethods } from './methods/transactions.ts'

export const RPC_METHODS: RpcMethods = {
  ...accountMethods,
  ...blockMethods,
  ...clusterMethods,
  ...feeMethods,
  ...leaderMethods,
  ...sendMethods,
  ...tokenMethods,
  ...transactionMethods,
}

/** serde_json refuses a value nested 128 deep. */
const DEPTH_MAX = 127
/** More items than fit into the largest body. */
const BATCH_ITEMS_MAX = 25_600
/**
 * Maximum size of the response to a batch; the items beyond it are refused one by one. The body is written in one step, which holds the event loop for some
 * milliseconds at this size.
 */
const RESPONSE_CHARS_MAX = 32 * 1024 * 1024

/** The response to a request body as jsonrpc-core makes it. Undefined where there is none: notifications only, or an empty batch. */
export async function responseBody(
  context: RpcContext,
  text: string,
  responseCharsMax: number = RESPONSE_CHARS_MAX,
): Promise<string | undefined> {
  const body = readRequestBody(text, { depthMax: DEPTH_MAX, batchItemsMax: BATCH_ITEMS_MAX })
  if (!body.ok || !body.items.every(isReadable)) return fail('null', parseError())
  if (!body.batch) return respondToItem(context, body.items[0] as RequestItem)
  const responses: string[] = []
  const slices = context.createSlices()
  let chars = 0
  for (const item of body.items) {
    if (slices.isSpent()) await slices.yield()
    const response = chars < responseCharsMax ? await respondToItem(context, item) : refuseItem(item)
    if (response === undefined) continue
    responses.push(response)
    chars += response.length
  }
  return responses.length === 0 ? undefined : `[${responses.join(',')}]`
}

/** An item that is not an object, or has an id of another type, makes the whole body invalid in jsonrpc-core. */
function isReadable({ isObject, id, duplicate }: RequestItem): boolean {
  if (!isObject || duplicate === 'id') return false
  const kind = id === undefined ? 'null' : idKind(id)
  return kind === 'null' || kind === 'string' || kind === 'u64'
}

async function respondToItem(context: RpcContext, item: RequestItem): Promise<string | undefined> {
  const { id, methodName } = item
  if (!isRequest(item) || methodName === undefined) return fail(id ?? 'null', invalidRequest())
  const hasVersion = item.jsonrpc !== undefined && item.jsonrpc !== 'null'
  if (id === undefined) {
    if (hasVersion) await run(context, methodName, item.params)
    return undefined
  }
  if (!hasVersion) return fail(id, invalidRequest('Unsupported JSON-RPC protocol version'))
  const outcome = await run(context, methodName, item.params)
  return outcome instanceof RpcError ? fail(id, outcome) : writeResult(id, outcome)
}

/** Whether the item has only the known members, each once and of its type. */
function isRequest({ jsonrpc, params, duplicate, hasUnknownMember }: RequestItem): boolean {
  if (duplicate !== undefined || hasUnknownMember) return false
  if (jsonrpc !== undefined && jsonrpc !== 'null' && jsonrpc !== '"2.0"') return false
  return params === undefined || params === 'null' || params.startsWith('[') || params.startsWith('{')
}

/** The result as text, or the error. An exception is logged and returned as -32603; it does not end the service. */
async function run(context: RpcContext, name: string, params: string | undefined): Promise<string | RpcError> {
  const method = Object.hasOwn(RPC_METHODS, name) ? RPC_METHODS[name] : undefined
  if (!method) return methodNotFound()
  try {
    return writeJson(await method(context, params === 'null' ? undefined : params))
  } catch (error) {
    if (error instanceof RpcError) return error
    context.log.error({ err: error }, 'rpc method failed')
    return internalError()
  }
}

function refuseItem({ id }: RequestItem): string | undefined {
  return id === undefined ? undefined : fail(id, internalError('Batch response too large'))
}

function fail(id: string, { code, message, data }: RpcError): string {
  return writeError(id, { code, message, data: data === undefined ? undefined : writeJson(data) })
}
