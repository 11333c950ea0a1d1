import { ERRORS } from '../../contract/errors.ts'
import type { WaitingWork } from '../../core/work.ts'
import { PRICE, unitsOfBytes } from '../api/work-budget.ts'
import type { CallMeter } from './call-meter.ts'
import type { EthMethod } from './eth-methods.ts'
import { LimitFailure, type LimitName, RpcFailure } from './failure.ts'
import { type RpcCall, readCalls } from './json-rpc-calls.ts'
import type { ResponseText } from './response-text.ts'

export type JsonRpcOptions = { readonly batchItemsMax: number }

export type JsonRpcDeps = {
  readonly methods: Readonly<Record<string, EthMethod>>
  /** A method threw an unexpected error; the caller gets an internal error without details. */
  readonly onFault: (error: unknown, method: string) => void
  readonly onCall?: (method: string, outcome: 'ok' | 'error') => void
  readonly onLimit?: (limit: LimitName) => void
}

export type RpcRequest = { readonly body: Buffer; readonly meter: CallMeter; readonly out: ResponseText }

/** The status of the response in `out`; 204 for notifications only. */
export type RpcOutcome = { readonly status: 200 | 204 | 413 | 429; readonly retryAfterMs?: number | undefined }

type CallOutcome = { readonly isNotification: boolean; readonly retryAfterMs?: number | undefined }

/** Handles the body of `POST /` according to JSON-RPC 2.0. */
export function* respondToJsonRpc(
  { body, meter, out }: RpcRequest,
  options: JsonRpcOptions,
  deps: JsonRpcDeps,
): WaitingWork<RpcOutcome> {
  meter.charge(unitsOfBytes(body.length) - 1)
  const read = readCalls(body)
  yield
  if (!read.ok) return refuse(out, 'parse-error')
  if (!read.isBatch) {
    const { isNotification, retryAfterMs } = yield* respondToCall(read.calls[0] as RpcCall, { meter, out }, deps)
    if (retryAfterMs !== undefined) return { status: 429, retryAfterMs }
    return { status: isNotification ? 204 : 200 }
  }
  if (read.calls.length === 0) return refuse(out, 'invalid-request', 'a batch has at least one call')
  if (read.calls.length > options.batchItemsMax) {
    deps.onLimit?.('batchItems')
    return refuseBatch(out, options.batchItemsMax)
  }
  return yield* respondToBatch(read.calls, { meter, out }, deps)
}

function* respondToBatch(
  calls: readonly RpcCall[],
  request: Omit<RpcRequest, 'body'>,
  deps: JsonRpcDeps,
): WaitingWork<RpcOutcome> {
  const { out } = request
  const waits: number[] = []
  let responses = 0
  for (const call of calls) {
    yield
    const before = out.mark()
    out.addUnlimited(responses === 0 ? '[' : ',')
    const { isNotification, retryAfterMs } = yield* respondToCall(call, request, deps)
    if (isNotification) out.rollBack(before)
    else responses += 1
    if (retryAfterMs !== undefined) waits.push(retryAfterMs)
  }
  if (responses === 0) return { status: 204 }
  out.addUnlimited(']')
  // All calls were refused: the status is 429 too.
  return waits.length === calls.length ? { status: 429, retryAfterMs: Math.max(...waits) } : { status: 200 }
}

function* respondToCall(
  { call, id, isAmbiguous }: RpcCall,
  { meter, out }: Omit<RpcRequest, 'body'>,
  { methods, onFault, onCall, onLimit }: JsonRpcDeps,
): WaitingWork<CallOutcome> {
  const responded = { isNotification: false }
  const invalid = (detail: string, known = 'null'): CallOutcome => {
    meter.charge(PRICE.call)
    refuse(out, 'invalid-request', detail, known)
    return responded
  }
  if (typeof call !== 'object' || call === null || Array.isArray(call)) return invalid('a call is an object')
  const { jsonrpc, method, params: givenParams, id: given } = call as Record<string, unknown>
  // Nodes accept null where a method has no parameters.
  const params = givenParams ?? []
  if (given !== undefined && given !== null && typeof given !== 'string' && typeof given !== 'number')
    return invalid('id is a string, a number or null')
  const known = id ?? 'null'
  if (jsonrpc !== '2.0' || typeof method !== 'string') return invalid('jsonrpc is "2.0" and method a string', known)
  if (isAmbiguous) return invalid('a member occurs twice', known)
  const isNotification = given === undefined
  const before = out.mark()
  try {
    meter.take(PRICE.call)
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (run === undefined) throw new RpcFailure('method-not-found')
    if (!Array.isArray(params)) throw new RpcFailure('invalid-params', 'params is an array')
    out.add('{"jsonrpc":"2.0","result":')
    yield* run(params, { meter, out })
    out.add(`,"id":${known}}`)
    onCall?.(method, 'ok')
    if (isNotification) out.rollBack(before)
    return { isNotification }
  } catch (error) {
    out.rollBack(before)
    onCall?.(method, 'error')
    if (error instanceof LimitFailure) onLimit?.(error.limit)
    if (!(error instanceof RpcFailure)) onFault(error, method)
    const { code, message, data } = error instanceof RpcFailure ? error : INTERNAL
    if (!isNotification) out.addUnlimited(errorText(known, code, message, data))
    return { isNotification, retryAfterMs: error instanceof LimitFailure ? error.retryAfterMs : undefined }
  }
}

const INTERNAL = { code: ERRORS.internal.jsonRpc, message: ERRORS.internal.sentence, data: undefined }

function refuse(
  out: ResponseText,
  code: 'parse-error' | 'invalid-request',
  detail?: string,
  id: string = 'null',
): RpcOutcome {
  const { jsonRpc, sentence } = ERRORS[code]
  out.addUnlimited(errorText(id, jsonRpc, detail === undefined ? sentence : `${sentence}: ${detail}`))
  return { status: 200 }
}

function refuseBatch(out: ResponseText, size: number): RpcOutcome {
  const { code, message, data } = new LimitFailure(`a batch has at most ${size} calls`, { limit: 'batchItems', size })
  out.addUnlimited(errorText('null', code, message, data))
  return { status: 413 }
}

/** `id` is JSON text. */
export function errorText(id: string, code: number, message: string, data?: unknown): string {
  const error = JSON.stringify({ code, message, ...(data === undefined ? {} : { data }) })
  return `{"jsonrpc":"2.0","error":${error},"id":${id}}`
}
