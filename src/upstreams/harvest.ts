/**
 * Reads single facts out of an upstream's answer without building it; the bytes themselves are passed on untouched. A
 * string inside an answer cannot imitate what is looked for: its quotation marks are escaped.
 */

const CONTEXT = Buffer.from('"result":{"context":{')
/** The context stands at the beginning of an answer; further in it would be part of a value. */
const HEAD_BYTES = 192
const SLOT = /"slot":(\d{1,16})[,}]/
const SLOT_RESULT = /"result":(\d{1,16})[,}]/
/** Errors that mean something to the caller of this room are short. */
const ERROR_BYTES_MAX = 16 * 1024
const AGAVE_ERROR = /^\{"jsonrpc":"2\.0","error":\{"code":(-?\d{1,9})[,}]/

/** The slot in the context of an answer, where it has one. */
export function contextSlotOf(body: Buffer): number | undefined {
  const at = body.subarray(0, HEAD_BYTES).indexOf(CONTEXT)
  if (at === -1) return undefined
  const from = at + CONTEXT.length
  return slotIn(SLOT.exec(body.toString('latin1', from, from + HEAD_BYTES)))
}

/** The slot that is itself the result, as of getSlot. */
export function slotResultOf(body: Buffer): number | undefined {
  return slotIn(SLOT_RESULT.exec(body.toString('latin1', 0, HEAD_BYTES)))
}

function slotIn(match: RegExpExecArray | null): number | undefined {
  const slot = Number(match?.[1] ?? Number.NaN)
  return Number.isSafeInteger(slot) ? slot : undefined
}

/** The code of a single answer that is an error; undefined for results, batches and what is no JSON. */
export function errorCodeOf(body: Buffer): number | undefined {
  if (body.length > ERROR_BYTES_MAX || !body.includes('"error"')) return undefined
  const text = body.toString('utf8')
  const match = AGAVE_ERROR.exec(text)
  if (match !== null) return Number(match[1])
  const { error } = parseObject(text)
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined
  return typeof code === 'number' ? code : undefined
}

/** Whether the body is one small JSON-RPC answer, and not the page of some proxy in between. */
export function isJsonRpcBody(body: Buffer): boolean {
  return body.length <= ERROR_BYTES_MAX && Object.hasOwn(parseObject(body.toString('utf8')), 'jsonrpc')
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
