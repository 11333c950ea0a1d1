import { JsonScanner } from './scan.ts'

/**
 * A JSON-RPC 2.0 request body, split without being parsed: ids and params stay the text the client wrote, so that an id can be
 * echoed and params can be forwarded byte for byte. Which items are valid is decided by the server: nodes and the specification differ.
 */
export type RequestBody =
  | { readonly ok: true; readonly batch: boolean; readonly items: readonly RequestItem[] }
  | { readonly ok: false; readonly reason: 'not-json' | 'too-deep' | 'batch-too-long' }

export type RequestItem = {
  /** False for anything but an object; all members are then undefined. */
  readonly isObject: boolean
  readonly jsonrpc: string | undefined
  readonly id: string | undefined
  readonly params: string | undefined
  /** The member's raw text. */
  readonly method: string | undefined
  /** The name in `method`, where it is a string. */
  readonly methodName: string | undefined
  /** A member that occurs twice. The last occurrence is the one reported above, as in JSON.parse. */
  readonly duplicate: 'id' | 'jsonrpc' | 'method' | 'params' | undefined
  readonly hasUnknownMember: boolean
}

export type RequestLimits = {
  /** How deep arrays and objects may be nested, the body itself counted. */
  readonly depthMax: number
  readonly batchItemsMax: number
}

export function readRequestBody(text: string, limits: RequestLimits): RequestBody {
  const scan = new JsonScanner(text, limits.depthMax)
  scan.skipSpace()
  const batch = scan.peek() === '['
  const items: RequestItem[] = []
  if (batch) {
    const end = scan.eachElement(() => {
      if (items.length >= limits.batchItemsMax) return 'stop'
      items.push(readItem(scan, text))
      return scan.fault === undefined ? 'go on' : 'stop'
    })
    if (scan.fault === undefined && end === 'stopped') return { ok: false, reason: 'batch-too-long' }
  } else {
    items.push(readItem(scan, text))
  }
  scan.expectEnd()
  if (scan.fault !== undefined) return { ok: false, reason: scan.fault }
  return { ok: true, batch, items }
}

/** One valid call. `id` and `paramsText` are the raw text of the client; without an id it is a notification, which gets no response. */
export type RpcCall = {
  readonly method: string
  readonly paramsText: string | undefined
  readonly id: string | undefined
}

/** A call, or the id under which the invalid item is refused. */
export type CheckedItem = { readonly call: RpcCall } | { readonly invalidId: string }

/** `parse-error`: no JSON, or nested too deep. `invalid-request`: an empty batch. */
export type CheckedBody =
  | { readonly kind: 'calls'; readonly batch: boolean; readonly items: readonly CheckedItem[] }
  | { readonly kind: 'parse-error' | 'invalid-request' | 'batch-too-long' }

export type CallLimits = RequestLimits & {
  /** Accepts params that are neither an array nor an object. */
  readonly anyParams?: boolean
}

/** A body by the rules of the JSON-RPC 2.0 specification. */
export function readCalls(text: string, limits: CallLimits): CheckedBody {
  const body = readRequestBody(text, limits)
  if (!body.ok) return { kind: body.reason === 'batch-too-long' ? 'batch-too-long' : 'parse-error' }
  if (body.items.length === 0) return { kind: 'invalid-request' }
  return { kind: 'calls', batch: body.batch, items: body.items.map((item) => checkItem(item, limits)) }
}

function checkItem(item: RequestItem, { anyParams = false }: CallLimits): CheckedItem {
  const { isObject, jsonrpc, id, methodName, duplicate } = item
  // Solana's Rust clients send null where a method has no parameters, and nodes accept it.
  const params = item.params === 'null' && !anyParams ? undefined : item.params
  const isIdValid = id === undefined || (idKind(id) !== 'other' && duplicate !== 'id')
  const isValid =
    isObject &&
    isIdValid &&
    duplicate === undefined &&
    jsonrpc === '"2.0"' &&
    (anyParams || params === undefined || params.startsWith('[') || params.startsWith('{'))
  if (!isValid || methodName === undefined) return { invalidId: isIdValid ? (id ?? 'null') : 'null' }
  return { call: { method: methodName, paramsText: params, id } }
}

/** The call as a node gets it: the members it knows and no other, the method without needless escapes. */
export function writeCall({ method, paramsText }: Omit<RpcCall, 'id'>, id: string | undefined): string {
  const params = paramsText === undefined ? '' : `,"params":${paramsText}`
  return `{"jsonrpc":"2.0"${id === undefined ? '' : `,"id":${id}`},"method":${JSON.stringify(method)}${params}}`
}

/** The kind of an id's raw text. Nodes accept null, strings and unsigned integers of 64 bits. */
export function idKind(raw: string): 'null' | 'string' | 'u64' | 'number' | 'other' {
  if (raw === 'null') return 'null'
  if (raw.startsWith('"')) return 'string'
  if (isDigits(raw)) return raw.length < 20 || (raw.length === 20 && raw <= '18446744073709551615') ? 'u64' : 'number'
  return /^[-\d]/.test(raw) ? 'number' : 'other'
}

function isDigits(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x30 || code > 0x39) return false
  }
  return text.length > 0
}

/** A response; `result` is JSON text, `id` the raw text of the request's id. */
export function writeResult(id: string, result: string): string {
  return `{"jsonrpc":"2.0","result":${result},"id":${id}}`
}

/** An error response; `data` is JSON text. */
export function writeError(
  id: string,
  error: { readonly code: number; readonly message: string; readonly data?: string | undefined },
): string {
  const data = error.data === undefined ? '' : `,"data":${error.data}`
  return `{"jsonrpc":"2.0","error":{"code":${error.code},"message":${JSON.stringify(error.message)}${data}},"id":${id}}`
}

/** The value of a valid JSON string. */
function stringOf(raw: string): string {
  return raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1)
}

const NOT_AN_OBJECT: RequestItem = {
  isObject: false,
  jsonrpc: undefined,
  id: undefined,
  params: undefined,
  method: undefined,
  methodName: undefined,
  duplicate: undefined,
  hasUnknownMember: false,
}

function readItem(scan: JsonScanner, text: string): RequestItem {
  scan.skipSpace()
  if (scan.peek() !== '{') {
    scan.skipValue()
    return NOT_AN_OBJECT
  }
  let jsonrpc: string | undefined
  let id: string | undefined
  let params: string | undefined
  let method: string | undefined
  let duplicate: RequestItem['duplicate']
  let hasUnknownMember = false
  scan.eachMember((name) => {
    scan.skipSpace()
    const from = scan.at
    scan.skipValue()
    const value = text.slice(from, scan.at)
    let before: string | undefined
    switch (name) {
      case 'jsonrpc':
        before = jsonrpc
        jsonrpc = value
        break
      case 'id':
        before = id
        id = value
        break
      case 'params':
        before = params
        params = value
        break
      case 'method':
        before = method
        method = value
        break
      default:
        hasUnknownMember = true
        return
    }
    if (before !== undefined && duplicate !== 'id') duplicate = name
  })
  const methodName = scan.fault === undefined && method?.startsWith('"') ? stringOf(method) : undefined
  return { isObject: true, jsonrpc, id, params, method, methodName, duplicate, hasUnknownMember }
}
