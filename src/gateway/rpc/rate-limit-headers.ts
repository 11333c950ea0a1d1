import type { Budget } from '../../access/quota/charge.ts'
import type { HttpResponse, ResponseRest } from '../../platform/http/server/post.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** The budget is told on every answer, before it runs out. */
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

/** What a node answered to one call. Its headers are made in the form that is asked for, and nearly always that is the text. */
export class NodeResponse implements HttpResponse {
  readonly status = 200
  readonly body: Buffer
  readonly rest: ResponseRest | undefined
  readonly #budget: Budget
  readonly #cost: number

  constructor(
    { body, rest }: { readonly body: Buffer; readonly rest?: ResponseRest | undefined },
    budget: Budget,
    cost: number,
  ) {
    this.body = body
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
