import type { Budget } from '../access/charge.ts'
import { ERRORS } from '../contract/errors.ts'
import { GrpcCode, type GrpcStatus } from '../host/grpc-status.ts'
import { budgetHeaders } from './budget-headers.ts'
import type { Refusal } from './refusal.ts'

/** A refusal as the status of a call. The message says all a person needs, since most clients show nothing else. */
export function grpcStatusOf(refusal: Refusal, budget?: Budget): GrpcStatus {
  return {
    code: (ERRORS[refusal.code] as { grpc?: number }).grpc ?? GrpcCode.internal,
    message: [refusal.message, ...detailsOf(refusal)].join('; '),
    ...(budget === undefined ? {} : { metadata: budgetHeaders(budget, 0) }),
  }
}

function detailsOf({ data }: Refusal): string[] {
  const { reason, limit, retryAfterMs, resetsAt } = data
  if (typeof limit !== 'string') return typeof reason === 'string' ? [`reason: ${reason}`] : []
  if (typeof retryAfterMs !== 'number' || typeof resetsAt !== 'string') return [`limit: ${limit}`]
  return [`limit: ${limit}`, `try again in ${retryAfterMs} ms (${resetsAt})`]
}
