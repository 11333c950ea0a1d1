import { CLOSE_BRACE, COMMA } from '../core/json-bytes.ts'

/**
 * Reads the slot and the error code from a node's response without parsing it. A string inside the response cannot imitate them: its
 * quotation marks are escaped.
 */

/** The order of members in Agave; other nodes may have another one. */
const RESULT = Buffer.from('{"jsonrpc":"2.0","result":')
const CONTEXT = Buffer.from('"result":{"context":{')
const RESULT_WITH_CONTEXT = Buffer.from('{"jsonrpc":"2.0","result":{"context":{')
/** The context is at the beginning of a response; further in it would be part of a value. */
const HEAD_BYTES = 192
const SLOT = Buffer.from('"slot":')
const SLOT_RESULT = /"result":(\d{1,16})[,}]/
/** The errors that matter here are short. */
const ERROR_BYTES_MAX = 16 * 1024
const AGAVE_ERROR = /^\{"jsonrpc":"2\.0","error":\{"code":(-?\d{1,9})[,}]/

/** The slot in the context of a response, where it has one. */
export function contextSlotOf(body: Buffer): number | undefined {
  const from = beginsWith(body, RESULT_WITH_CONTEXT) ? RESULT_WITH_CONTEXT.length : contextIn(body)
  if (from === -1) return undefined
  for (let at = from; at < from + HEAD_BYTES && at < body.length; at++) {
    if (!beginsWith(body, SLOT, at)) continue
    const slot = integerAt(body, at + SLOT.length)
    if (slot !== undefined) return slot
  }
  return undefined
}

/** An integer of at most 16 digits that ends its member. */
function integerAt(body: Buffer, from: number): number | undefined {
  let value = 0
  let at = from
  for (; at < from + 16; at++) {
    const digit = (body[at] ?? 0) - 0x30
    if (digit < 0 || digit > 9) break
    value = value * 10 + digit
  }
  const isComplete = at > from && (body[at] === COMMA || body[at] === CLOSE_BRACE)
  return isComplete && Number.isSafeInteger(value) ? value : undefined
}

/** The offset after the opening brace of the context; -1 where there is none. */
function contextIn(body: Buffer): number {
  // The result comes first and has no context.
  if (beginsWith(body, RESULT)) return -1
  const at = body.subarray(0, HEAD_BYTES).indexOf(CONTEXT)
  return at === -1 ? -1 : at + CONTEXT.length
}

/** The result of getSlot. */
export function slotResultOf(body: Buffer): number | undefined {
  const slot = Number(SLOT_RESULT.exec(body.toString('latin1', 0, HEAD_BYTES))?.[1] ?? Number.NaN)
  return Number.isSafeInteger(slot) ? slot : undefined
}

/** The code of a single error response; undefined for results, batches and what is no JSON. */
export function errorCodeOf(body: Buffer): number | undefined {
  if (body.length > ERROR_BYTES_MAX || beginsWith(body, RESULT) || !body.includes('"error"')) return undefined
  const text = body.toString('utf8')
  const match = AGAVE_ERROR.exec(text)
  if (match !== null) return Number(match[1])
  const { error } = parseObject(text)
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined
  return typeof code === 'number' ? code : undefined
}

/** Whether the body is one small JSON-RPC response, and not the error page of a proxy. */
export function isJsonRpcBody(body: Buffer): boolean {
  return body.length <= ERROR_BYTES_MAX && Object.hasOwn(parseObject(body.toString('utf8')), 'jsonrpc')
}

function beginsWith(body: Buffer, first: Buffer, from = 0): boolean {
  if (body.length < from + first.length) return false
  for (let at = 0; at < first.length; at++) if (body[from + at] !== first[at]) return false
  return true
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {}
  } catch {
    return {}
  }
}
