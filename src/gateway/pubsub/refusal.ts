import { ERRORS } from '../../contract/errors.ts'
import { writeError } from '../../solana/json/json-rpc.ts'
import { errorText, type Refusal } from '../refusal.ts'

/** A refusal as the answer to one request. */
export function refusalResponse(refusal: Refusal, requestId: string, id: string): string {
  return `{"jsonrpc":"2.0","error":${errorText(refusal, requestId)},"id":${id}}`
}

/** In the words of a node. */
export function invalidSubscription(id: string): string {
  return writeError(id, { code: ERRORS['invalid-params'].jsonRpc, message: 'Invalid subscription id.' })
}

/** More of one thing than a single connection may have, whatever the plan. */
export function refuseOnConnection(limit: string, size: number, words: string): Refusal {
  return {
    code: 'rate-limited',
    message: `limit reached: ${size} ${words} on one connection`,
    data: { reason: 'connections', limit, size, per: 'connection' },
  }
}

export function refuseLargeResponse(size: number): Refusal {
  return {
    code: 'too-large',
    message: `the answer has more than ${size} bytes: ask for it over HTTP`,
    data: { limit: 'answerBytes', size },
  }
}
