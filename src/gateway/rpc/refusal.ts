import type { Budget } from '../../access/quota/charge.ts'
import type { HttpResponse } from '../../platform/http/server/post.ts'
import { errorText, httpStatusOf, type Refusal } from '../refusal.ts'
import { budgetHeaders } from './rate-limit-headers.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** A whole request refused: the status says it too. */
export function refuse(
  refusal: Refusal,
  request: { readonly requestId: string },
  id = 'null',
  budget?: Budget,
): HttpResponse {
  const headers: Record<string, string> = { ...JSON_TYPE }
  if (refusal.code === 'unauthorized') headers['www-authenticate'] = 'Bearer'
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  if (budget !== undefined) Object.assign(headers, budgetHeaders(budget, 0))
  return { status: httpStatusOf(refusal), headers, body: errorResponse(refusal, request.requestId, id) }
}

/** The response to one call that is refused, under the id its client gave it, byte for byte. */
export function errorResponse(refusal: Refusal, requestId: string, id: string): string {
  return `{"jsonrpc":"2.0","error":${errorText(refusal, requestId)},"id":${id}}`
}
