import { ERRORS, type ErrorContext } from '../../contract/errors.ts'
import { ServiceError } from '../../core/error.ts'
import { CommitInDoubt } from '../../platform/db/sql.ts'

/** Refusals of the admin API itself, before a handler runs. */
export const ADMIN_REFUSALS = [
  'unauthorized',
  'forbidden',
  'csrf',
  'host-not-allowed',
  'too-many-requests',
  'token-in-url',
  'body-too-large',
  'not-json',
  'not-found',
  'method-not-allowed',
  'invalid-value',
  'idempotency-conflict',
  'idempotency-running',
  'secret-shown',
  'not-available',
  'sign-in-expired',
  'sign-in-refused',
  'no-role',
  'issuer-unavailable',
] as const
export type AdminRefusal = (typeof ADMIN_REFUSALS)[number]

export const STATUS: Readonly<Record<string, number>> = {
  unauthorized: 401,
  forbidden: 403,
  csrf: 403,
  'host-not-allowed': 421,
  'too-many-requests': 429,
  'token-in-url': 400,
  'body-too-large': 413,
  'not-json': 415,
  'method-not-allowed': 405,
  'idempotency-conflict': 422,
  'idempotency-running': 409,
  'secret-shown': 409,
  'not-available': 501,
  'sign-in-expired': 400,
  'sign-in-refused': 400,
  'no-role': 403,
  'issuer-unavailable': 503,
  usage: 400,
  'invalid-value': 400,
  'needs-confirmation': 400,
  'not-found': 404,
  'already-exists': 409,
  'wrong-state': 409,
  'coming-soon': 409,
  'revision-changed': 412,
  'store-locked': 503,
  'store-unavailable': 503,
  'control-unavailable': 503,
  'disk-full': 503,
  busy: 503,
}

/** A refusal with what to do about it. */
export class AdminError extends ServiceError {
  readonly headers: Readonly<Record<string, string>>
  constructor(code: AdminRefusal, message: string, fix: string, headers: Readonly<Record<string, string>> = {}) {
    super(code, message, { fix })
    this.headers = headers
  }
}

export type ErrorReply = {
  readonly status: number
  readonly body: object
  readonly headers: Readonly<Record<string, string>>
}

/** An error as the response has it. What is not a ServiceError is a fault of ours, and its text stays in the log. */
export function errorReply(error: unknown, { requestId, docsUrl }: ErrorContext): ErrorReply {
  if (!(error instanceof ServiceError)) {
    const fix = 'Report the request_id; the log of the process has the cause.'
    return replyOf(500, { code: 'internal', message: 'internal error', fix, request_id: requestId })
  }
  const { code, message } = error
  const entry = Object.hasOwn(ERRORS, code) ? ERRORS[code as keyof typeof ERRORS] : undefined
  // No 503: a client repeats a request after that, and the change may have been made.
  const status = error instanceof CommitInDoubt ? 500 : (STATUS[code] ?? 500)
  const fix = error.fix ?? entry?.fix ?? 'See docs/admin-api.md.'
  // Only where a page is about this error; that of `unauthorized` is about tokens of customers.
  const page = entry === undefined || code === 'unauthorized' ? undefined : docsUrl?.(code)
  const docs = page === undefined ? {} : { docs_url: page }
  const reply = replyOf(status, { code, message, fix, ...docs, request_id: requestId })
  if (error instanceof AdminError) return { ...reply, headers: error.headers }
  return status === 503 ? { ...reply, headers: { 'retry-after': '1' } } : reply
}

/** An error for a person who follows links in a browser: plain text, in which nothing is markup. */
export function errorText({ body }: ErrorReply): string {
  const { message, fix, request_id } = (body as { error: Record<string, string> }).error
  return `Sign-in failed: ${message}.\n\n${fix}\n\nrequest_id: ${request_id}\n`
}

function replyOf(status: number, error: object): ErrorReply {
  return { status, body: { error }, headers: {} }
}
