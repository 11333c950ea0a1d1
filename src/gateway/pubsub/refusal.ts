import { ERRORS } from '../../contract/errors.ts'
import { writeError } from '../../solana/json/json-rpc.ts'
import type { Refusal } from '../refusal.ts'

/** The text is that of a node (Agave). */
export function invalidSubscription(id: string): string {
  return writeError(id, { code: ERRORS['invalid-params'].jsonRpc, message: 'Invalid subscription id.' })
}

/** A limit of one connection, the same for every plan. */
export function refuseOnConnection(limit: string, size: number, label: string): Refusal {
  return {
    code: 'rate-limited',
    message: `limit reached: ${size} ${label} on one connection`,
    data: { reason: 'connections', limit, size, per: 'connection' },
  }
}

/** The limit applies to all responses of a batch together. */
export function refuseLargeResponse(size: number, isBatch: boolean): Refusal {
  const what = isBatch ? 'the responses of the batch have' : 'the response has'
  return {
    code: 'too-large',
    message: `${what} more than ${size} bytes: request it over HTTP`,
    data: { limit: 'answerBytes', size },
  }
}
