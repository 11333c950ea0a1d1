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

export type RpcCall = {
  readonly call: unknown
  readonly id: string | undefined
  /** A member occurs twice: parsers read such a call differently. */
  readonly isAmbiguous: boolean
}

/** Deeper bodies are not parsed: parsing takes long, and no call is nested so deep. */
const DEPTH_MAX = 32

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses a body; not ok where it is not UTF-8 JSON, or nested too deep. */
export function readCalls(body: Buffer): RpcCalls {
  try {
    const text = utf8.decode(body)
    const isBatch = /^\s*\[/.test(text)
    const members = scanMembers(text, isBatch ? 2 : 1)
    if (members === undefined) return { ok: false }
    const parsed: unknown = JSON.parse(text)
    const calls = (isBatch ? (parsed as unknown[]) : [parsed]).map((call, at) => ({
      call,
      id: members.ids.get(at),
      isAmbiguous: members.ambiguous.has(at),
    }))
    return { ok: true, isBatch, calls }
  } catch {
    return { ok: false }
  }
}

type Members = {
  /** The text of the member `id` of each call by index; none where there are several. */
  readonly ids: Map<number, string>
  readonly ambiguous: Set<number>
}

/**
 * Scans a body before it is parsed; calls are at nesting depth `callDepth`. Undefined where it is nested too deep; without meaning where it
 * is not valid JSON.
 */
function scanMembers(text: string, callDepth: number): Members | undefined {
  const ids = new Map<number, string>()
  const ambiguous = new Set<number>()
  /** Member names of the call. */
  const names = new Set<unknown>()
  let depth = 0
  let call = 0
  /** Whether the next string is a member name of a call. */
  let isMember = false
  let nameText = ''
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = stringEnd(text, at)
      if (isMember) nameText = text.slice(at, end)
      at = end - 1
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1
      if (depth > DEPTH_MAX) return undefined
      isMember = depth === callDepth && code === OPEN_BRACE
      if (isMember) names.clear()
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1
      isMember = false
    } else if (code === COMMA) {
      if (depth === callDepth - 1) call += 1
      isMember = depth === callDepth
    } else if (code === COLON && isMember) {
      isMember = false
      const name: unknown = JSON.parse(nameText)
      if (names.has(name)) ambiguous.add(call)
      if (name === 'id' && names.has(name)) ids.delete(call)
      else if (name === 'id') ids.set(call, scalarAt(text, at + 1))
      names.add(name)
    }
  }
  return { ids, ambiguous }
}

/** The index after the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  let end = at + 1
  while (end < text.length && text.charCodeAt(end) !== QUOTE) end += text.charCodeAt(end) === BACKSLASH ? 2 : 1
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
