import type { OverLimit } from '../access/quota/charge.ts'
import type { NoPermit } from '../access/quota/permits.ts'
import { docsUrl, ERRORS, type TokenRefusal } from '../contract/errors.ts'
import { LIMIT_WORDS } from '../contract/limits.ts'
import type { HeldBytesLimit } from '../platform/http/response-budget.ts'

/** A refusal before it takes the form of a protocol: refused means not forwarded and not charged. */
export type Refusal = {
  readonly code: keyof typeof ERRORS
  readonly message: string
  /** What a program can act on. */
  readonly data: Readonly<Record<string, unknown>>
  readonly retryAfterSeconds?: number
}

/** The Rust Solana client honours whole seconds below 120 and nothing else; the true time stands in `data`. */
const RETRY_AFTER_SECONDS_MAX = 119

export function refuseToken(reason: TokenRefusal): Refusal {
  return { code: 'unauthorized', message: 'missing or invalid token', data: { reason, fix: ERRORS.unauthorized.fix } }
}

export function refuseOverLimit(over: OverLimit, method: string, nowMs: number): Refusal {
  const { limitName, limitSize, cost, retryAfterMs } = over
  const canWait = Number.isFinite(retryAfterMs)
  const what =
    limitName === 'methodPerSecond'
      ? `${limitSize} ${method} calls per second`
      : `${limitSize} ${LIMIT_WORDS[limitName]}`
  return {
    code: 'rate-limited',
    message: `limit reached: ${what}`,
    data: {
      reason: limitName === 'unitsPerMonth' ? 'quota' : limitName === 'methodPerSecond' ? 'method' : 'rate',
      limit: limitName,
      size: limitSize,
      cost,
      retryAfterMs: canWait ? Math.ceil(retryAfterMs) : null,
      ...(canWait ? { resetsAt: new Date(nowMs + retryAfterMs).toISOString() } : {}),
    },
    retryAfterSeconds: wholeSeconds(retryAfterMs),
  }
}

export function refusePermit({ limitName, limitSize }: NoPermit): Refusal {
  return {
    code: 'rate-limited',
    message: `limit reached: ${limitSize} ${LIMIT_WORDS[limitName]}`,
    data: { reason: 'connections', limit: limitName, size: limitSize },
    retryAfterSeconds: 5,
  }
}

export function refuseSize(limit: 'requestBytes' | 'batchItems', size: number): Refusal {
  return { code: 'too-large', message: `limit reached: ${size} ${LIMIT_WORDS[limit]}`, data: { limit, size } }
}

/** A compressed body that inflates to more times its size than any real request does. */
export function refuseRatio(size: number): Refusal {
  const message = `limit reached: a compressed body may inflate to ${size} times its size; send it uncompressed`
  return { code: 'too-large', message, data: { limit: 'inflateRatio', size } }
}

/** A request that would take memory the process does not have to give; `size` in bytes. */
export function refuseHeldBytes(limit: HeldBytesLimit, size: number): Refusal {
  const whose = limit === 'heldBytes' ? 'this process' : 'one subscription'
  return {
    code: 'overloaded',
    message: `limit reached: ${size} bytes of requests and responses held for ${whose}`,
    data: { limit, size, fix: ERRORS.overloaded.fix },
    retryAfterSeconds: 2,
  }
}

export function refuseUpstream(code: 'no-upstream' | 'upstream-timeout' | 'draining'): Refusal {
  return {
    code,
    message: ERRORS[code].sentence,
    data: {},
    ...(code === 'upstream-timeout' ? {} : { retryAfterSeconds: 2 }),
  }
}

/** The error member of a JSON-RPC answer, as text. */
export function errorText(refusal: Refusal, requestId: string): string {
  const { code, message, data } = refusal
  return JSON.stringify({
    code: (ERRORS[code] as { jsonRpc?: number }).jsonRpc ?? ERRORS.internal.jsonRpc,
    message,
    data: { ...data, request_id: requestId, docs_url: docsUrl(code) },
  })
}

export function httpStatusOf(refusal: Refusal): number {
  return (ERRORS[refusal.code] as { http?: number }).http ?? 500
}

function wholeSeconds(ms: number): number {
  return Math.min(RETRY_AFTER_SECONDS_MAX, Math.max(1, Math.ceil(ms / 1000)))
}
