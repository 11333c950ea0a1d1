import type { Budget } from '../../access/quota/charge.ts'
import type { HttpResponse } from '../../platform/http/server/post.ts'
import { errorResponse, httpStatusOf, type RefusableRequest, type Refusal } from '../refusal.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** Every response carries the budget, not only one that refuses. */
export function budgetHeaders(
  budget: Budget,
  cost: number,
  headers: Record<string, string> = {},
): Record<string, string> {
  headers['x-ratelimit-limit'] = budget.limit === null ? 'unlimited' : String(Math.floor(budget.limit))
  headers['x-ratelimit-remaining'] = budget.remaining === null ? 'unlimited' : String(budget.remaining)
  headers['x-ratelimit-reset'] = String(Math.ceil(budget.resetMs / 1000))
  headers['x-ratelimit-cost'] = String(cost)
  return headers
}

export function jsonHeaders(budget: Budget, cost: number): Record<string, string> {
  return budgetHeaders(budget, cost, { ...JSON_TYPE })
}

/** A node's response to one call. The headers are built in the form the server reads, which is nearly always `lines`. */
export class ForwardedResponse implements HttpResponse {
  readonly status = 200
  readonly body: Buffer
  readonly pooled: HttpResponse['pooled']
  readonly rest: HttpResponse['rest']
  readonly #budget: Budget
  readonly #cost: number

  constructor(
    { body, pooled, rest }: Pick<HttpResponse, 'pooled' | 'rest'> & { readonly body: Buffer },
    budget: Budget,
    cost: number,
  ) {
    this.body = body
    this.pooled = pooled
    this.rest = rest
    this.#budget = budget
    this.#cost = cost
  }

  get headers(): Record<string, string> {
    return jsonHeaders(this.#budget, this.#cost)
  }

  /** The same fields in the same order. */
  get lines(): string {
    const { limit, remaining, resetMs } = this.#budget
    return `content-type: application/json\r\nx-ratelimit-limit: ${limit === null ? 'unlimited' : Math.floor(limit)}\r\nx-ratelimit-remaining: ${remaining ?? 'unlimited'}\r\nx-ratelimit-reset: ${Math.ceil(resetMs / 1000)}\r\nx-ratelimit-cost: ${this.#cost}\r\n`
  }
}

type RefusedCall = {
  readonly id?: string | undefined
  /** Of the caller, where the token is valid. */
  readonly budget?: Budget | undefined
  /** Units that stay charged. */
  readonly cost?: number
}

/** Refuses a request as a whole, in the status too. */
export function refuse(
  refusal: Refusal,
  request: RefusableRequest,
  { id = 'null', budget, cost = 0 }: RefusedCall = {},
): HttpResponse {
  const headers: Record<string, string> = { ...JSON_TYPE }
  if (refusal.code === 'unauthorized') headers['www-authenticate'] = 'Bearer'
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  if (budget !== undefined) budgetHeaders(budget, cost, headers)
  return { status: httpStatusOf(refusal), headers, body: errorResponse(refusal, request, id) }
}
