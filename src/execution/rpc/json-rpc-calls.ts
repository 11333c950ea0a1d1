import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../core/json-bytes.ts'

/** The calls of a request body. `id` is the JSON text of the id as sent, so that numbers are not rounded. */
export type RpcCalls =
  | { readonly ok: true; readonly isBatch: boolean; readonly calls: readonly RpcCall[] }
  | { readonly ok: false }

export type RpcCall = { readonly call: unknown; readonly id: string | undefined }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses a body; not ok where it is not UTF-8 JSON. */
export function readCalls(body: Buffer): RpcCalls {
  try {
    const text = utf8.decode(body)
    const parsed: unknown = JSON.parse(text)
    const isBatch = Array.isArray(parsed)
    const ids = idTexts(text, isBatch ? 2 : 1)
    const calls = (isBatch ? (parsed as unknown[]) : [parsed]).map((call, at) => ({ call, id: ids.get(at) }))
    return { ok: true, isBatch, calls }
  } catch {
    return { ok: false }
  }
}

/** The text of the member `id` of each call by index. `text` is valid JSON; calls are at nesting depth `callDepth`. */
function idTexts(text: string, callDepth: number): Map<number, string> {
  const ids = new Map<number, string>()
  let depth = 0
  let call = 0
  /** Whether the next string is a member name of a call. */
  let isMember = false
  let name = ''
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = stringEnd(text, at)
      if (isMember) name = text.slice(at, end)
      at = end - 1
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1
      isMember = depth === callDepth && code === OPEN_BRACE
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1
      isMember = false
    } else if (code === COMMA) {
      if (depth === callDepth - 1) call += 1
      isMember = depth === callDepth
    } else if (code === COLON && isMember) {
      isMember = false
      if (JSON.parse(name) === 'id') ids.set(call, scalarAt(text, at + 1))
    }
  }
  return ids
}

/** The index after the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  let end = at + 1
  for (let code = text.charCodeAt(end); code !== QUOTE; code = text.charCodeAt(end)) end += code === BACKSLASH ? 2 : 1
  return end + 1
}

const SPACE = /\s*/y
const WORD = /[^\s,}]*/y

/** The text of a string, number or literal; meaningless for an object or a list, which is not a valid id. */
function scalarAt(text: string, from: number): string {
  SPACE.lastIndex = from
  const at = from + (SPACE.exec(text)?.[0].length ?? 0)
  if (text.charCodeAt(at) === QUOTE) return text.slice(at, stringEnd(text, at))
  WORD.lastIndex = at
  return WORD.exec(text)?.[0] ?? ''
}
