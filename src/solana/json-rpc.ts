import { JsonScanner } from './json-scan.ts'

/**
 * A JSON-RPC 2.0 request body taken apart without being parsed: ids and params stay the text the client wrote, so that an id can be
 * echoed and params can be passed on byte for byte. What is a fault is the door's to say: nodes and the specification differ.
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
  /** A member that stands there twice. The later one is the one kept above, as in JSON.parse. */
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

/** What kind of id a raw text is. Nodes take null, strings and unsigned integers of 64 bits. */
export function idKind(raw: string): 'null' | 'string' | 'u64' | 'number' | 'other' {
  if (raw === 'null') return 'null'
  if (raw.startsWith('"')) return 'string'
  if (/^\d+$/.test(raw))
    return raw.length < 20 || (raw.length === 20 && raw <= '18446744073709551615') ? 'u64' : 'number'
  return /^[-\d]/.test(raw) ? 'number' : 'other'
}

/** An answer; `result` is JSON text, `id` the raw text of the request's id. */
export function writeResult(id: string, result: string): string {
  return `{"jsonrpc":"2.0","result":${result},"id":${id}}`
}

/** A refusal; `data` is JSON text. */
export function writeError(
  id: string,
  error: { readonly code: number; readonly message: string; readonly data?: string | undefined },
): string {
  const data = error.data === undefined ? '' : `,"data":${error.data}`
  return `{"jsonrpc":"2.0","error":{"code":${error.code},"message":${JSON.stringify(error.message)}${data}},"id":${id}}`
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
  const members: { jsonrpc?: string; id?: string; params?: string; method?: string } = {}
  let duplicate: RequestItem['duplicate']
  let hasUnknownMember = false
  scan.eachMember((name) => {
    scan.skipSpace()
    const from = scan.at
    scan.skipValue()
    if (name === 'jsonrpc' || name === 'id' || name === 'params' || name === 'method') {
      if (members[name] !== undefined && duplicate !== 'id') duplicate = name
      members[name] = text.slice(from, scan.at)
    } else {
      hasUnknownMember = true
    }
  })
  const { jsonrpc, id, params, method } = members
  const methodName = scan.fault === undefined && method?.startsWith('"') ? (JSON.parse(method) as string) : undefined
  return { isObject: true, jsonrpc, id, params, method, methodName, duplicate, hasUnknownMember }
}
