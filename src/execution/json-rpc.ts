import { ERRORS } from '../contract/errors.ts'
import type { EthMethod } from './eth-methods.ts'
import { RpcFailure } from './rpc-failure.ts'

/** Calls in one batch. */
const BATCH_MAX = 100

export type JsonRpcDeps = {
  readonly methods: Readonly<Record<string, EthMethod>>
  /** A method failed in a way nobody foresaw; the caller hears nothing of it but that it did. */
  readonly onFault: (error: unknown, method: string) => void
  readonly onCall?: (method: string, outcome: 'ok' | 'error') => void
}

type Id = string | number | null

/** Answers the body of `POST /` as the JSON-RPC 2.0 text says; undefined when nothing in it wants an answer. */
export function answerJsonRpc(body: Buffer, deps: JsonRpcDeps): string | undefined {
  let request: unknown
  try {
    request = JSON.parse(body.toString('utf8'))
  } catch {
    return errorText(null, ERRORS['parse-error'].jsonRpc, ERRORS['parse-error'].sentence)
  }
  if (!Array.isArray(request)) return answerOne(request, deps)
  if (request.length === 0) return invalidRequest('a batch has at least one call')
  if (request.length > BATCH_MAX) return invalidRequest(`a batch has at most ${BATCH_MAX} calls`)
  const answers = request.map((one) => answerOne(one, deps)).filter((answer) => answer !== undefined)
  return answers.length === 0 ? undefined : `[${answers.join(',')}]`
}

function answerOne(request: unknown, { methods, onFault, onCall }: JsonRpcDeps): string | undefined {
  if (typeof request !== 'object' || request === null || Array.isArray(request))
    return invalidRequest('a call is an object')
  const { jsonrpc, method, params = [], id } = request as Record<string, unknown>
  if (id !== undefined && id !== null && typeof id !== 'string' && typeof id !== 'number')
    return invalidRequest('id is a string, a number or null')
  const known = (id ?? null) as Id
  if (jsonrpc !== '2.0' || typeof method !== 'string')
    return invalidRequest('jsonrpc is "2.0" and method a string', known)
  const answer = (text: string): string | undefined => (id === undefined ? undefined : text)
  try {
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (run === undefined) throw new RpcFailure('method-not-found')
    if (!Array.isArray(params)) throw new RpcFailure('invalid-params', 'params is an array')
    const result = JSON.stringify(run(params))
    onCall?.(method, 'ok')
    return answer(`{"jsonrpc":"2.0","result":${result},"id":${JSON.stringify(known)}}`)
  } catch (error) {
    onCall?.(method, 'error')
    if (error instanceof RpcFailure) return answer(errorText(known, error.code, error.message, error.data))
    onFault(error, method)
    return answer(errorText(known, ERRORS.internal.jsonRpc, ERRORS.internal.sentence))
  }
}

function invalidRequest(detail: string, id: Id = null): string {
  return errorText(id, ERRORS['invalid-request'].jsonRpc, `${ERRORS['invalid-request'].sentence}: ${detail}`)
}

function errorText(id: Id, code: number, message: string, data?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', error: { code, message, ...(data === undefined ? {} : { data }) }, id })
}
