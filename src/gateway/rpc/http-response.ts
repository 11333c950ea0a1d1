import type { RemainingQuota } from '../../access/quota/charge.ts'
import type { HttpResponse } from '../../platform/http/server/post.ts'
import { errorResponse, httpStatusOf, type RefusableRequest, type Refusal } from '../refusal.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** Every response carries the remaining quota, not only one that refuses. */
export function rateLimitHeaders(
  quota: RemainingQuota,
  cost: number,
  headers: Record<string, string> = {},
): Record<string, string> {
  headers['x-ratelimit-limit'] = quota.limit === null ? 'unlimited' : String(Math.floor(quota.limit))
  headers['x-ratelimit-remaining'] = quota.remaining === null ? 'unlimited' : String(quota.remaining)
  headers['x-ratelimit-reset'] = String(Math.ceil(quota.resetMs / 1000))
  headers['x-ratelimit-cost'] = String(cost)
  return headers
}

export function jsonHeaders(quota: RemainingQuota, cost: number): Record<string, string> {
  return rateLimitHeaders(quota, cost, { ...JSON_TYPE })
}

/** A node's response to one call. The headers are built in the form the server reads, which is nearly always `lines`. */
export class ForwardedResponse implements HttpResponse {
  readonly status = 200
  readonly body: Buffer
  readonly pooled: HttpResponse['pooled']
  readonly rest: HttpResponse['rest']
  readonly #quota: RemainingQuota
  readonly #cost: number

  constructor(
    { body, pooled, rest }: Pick<HttpResponse, 'pooled' | 'rest'> & { readonly body: Buffer },
    quota: RemainingQuota,
    cost: number,
  ) {
    this.body = body
    this.pooled = pooled
    this.rest = rest
    this.#quota = quota
    this.#cost = cost
  }

  get headers(): Record<string, string> {
    return jsonHeaders(this.#quota, this.#cost)
  }

  /** The same fields in the same order. */
  get lines(): string {
    const { limit, remaining, resetMs } = this.#quota
    return `content-type: application/json\r\nx-ratelimit-limit: ${limit === null ? 'unlimited' : Math.floor(limit)}\r\nx-ratelimit-remaining: ${remaining ?? 'unlimited'}\r\nx-ratelimit-reset: ${Math.ceil(resetMs / 1000)}\r\nx-ratelimit-cost: ${this.#cost}\r\n`
  }
}

type RefusalContext = {
  readonly id?: string | undefined
  /** What is left of the quota of the caller, where the token is valid. */
  readonly quota?: RemainingQuota | undefined
  /** Units that stay charged. */
  readonly cost?: number
}

/** The response to a request that is refused as a whole, in the status too. */
export function refusalResponse(
  refusal: Refusal,
  request: RefusableRequest,
  { id = 'null', ...charge }: RefusalContext = {},
): HttpResponse {
  return refusalResponseWith(errorResponse(refusal, request, id), refusal, charge)
}

/** A response with this body, and the status and headers of the refusal. An invalid token has no quota, also where it was valid before the body came. */
export function refusalResponseWith(
  body: string,
  refusal: Refusal,
  { quota, cost = 0 }: Pick<RefusalContext, 'quota' | 'cost'>,
): HttpResponse {
  const headers: Record<string, string> = body === '' ? {} : { ...JSON_TYPE }
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  if (refusal.code === 'unauthorized') headers['www-authenticate'] = 'Bearer'
  else if (quota !== undefined) rateLimitHeaders(quota, cost, headers)
  return { status: httpStatusOf(refusal), headers, body }
}
