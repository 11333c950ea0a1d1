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

export function refuseLargeResponse(size: number): Refusal {
  return {
    code: 'too-large',
    message: `the response has more than ${size} bytes: request it over HTTP`,
    data: { limit: 'answerBytes', size },
  }
}
