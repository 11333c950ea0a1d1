import type { NotAssigned } from '../access/admission.ts'
import type { Refused } from '../access/callers.ts'
import type { TokenInterface } from '../access/credentials.ts'
import { type ExplainedRefusal, explainRefusal } from '../access/explain-refusal.ts'
import type { FreeRefusals } from '../access/free-refusals.ts'
import type { OverLimit } from '../access/quota/charge.ts'
import type { NoPermit } from '../access/quota/permits.ts'
import { ERRORS, type ErrorContext } from '../contract/errors.ts'
import { LIMIT_LABELS } from '../contract/limits.ts'
import type { HeldBytesLimit } from '../platform/http/held-bytes.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import type { UpstreamFailure } from '../upstreams/response.ts'

/** A refusal, independent of the protocol that carries it. A refused call is neither forwarded nor charged, unless its data has `charged`, or its checks, or those of a node, failed beyond `FREE_REFUSALS`. */
export type Refusal = {
  readonly code: keyof typeof ERRORS
  readonly message: string
  /** Fields for the client's program. */
  readonly data: Readonly<Record<string, unknown>>
  readonly retryAfterSeconds?: number
  /** Whose limit was reached, where the request itself does not carry it. For the log, not for the client. */
  readonly subscription?: string
}

/** A request that may be refused: the id that its responses carry, and who is notified of a refusal. */
export type RefusableRequest = ErrorContext & {
  onRefused?: ((refusal: Refusal, requestId: string) => void) | undefined
}

/** Records refusals of one interface under the id of their request; of one subscription where it is known. */
export function recordRefusals(
  refusals: Pick<RefusalRecorder, 'record'> | undefined,
  server: 'rpc' | 'ws',
  subscription?: string,
): RefusableRequest['onRefused'] {
  if (refusals === undefined) return undefined
  return ({ code, message, data, subscription: owner = subscription }, requestId) =>
    refusals.record({
      requestId,
      interface: server,
      subscription: owner,
      error: code,
      limit: textOf(data['limit']),
      reason: textOf(data['reason']),
      message,
    })
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The Rust Solana client honours whole seconds below 120 and nothing else; the exact time is in `data`. */
const RETRY_AFTER_SECONDS_MAX = 119

export function tokenRefusal(explained: ExplainedRefusal): Refusal {
  return { code: 'unauthorized', message: 'missing or invalid token', data: explained }
}

/** The customer's retries cannot end it before the operator acts. */
const NOT_ASSIGNED_RETRY_SECONDS = 30

/** A valid token whose subscription has no node. */
export function notAssignedRefusal(): Refusal {
  const { sentence, fix } = ERRORS['not-assigned']
  return {
    code: 'not-assigned',
    message: sentence,
    data: { reason: 'not-assigned', fix },
    retryAfterSeconds: NOT_ASSIGNED_RETRY_SECONDS,
  }
}

/** A call that was refused for another reason than a limit. */
export function callerRefusal(tokenInterface: TokenInterface, refused: Refused | NotAssigned): Refusal {
  return refused.reason === 'not-assigned'
    ? notAssignedRefusal()
    : tokenRefusal(explainRefusal(tokenInterface, refused))
}

export function overLimitRefusal(over: OverLimit, method: string, nowMs: number): Refusal {
  const { limitName, limitSize, cost, retryAfterMs } = over
  const canWait = Number.isFinite(retryAfterMs)
  const what =
    limitName === 'methodPerSecond'
      ? `${limitSize} ${method} calls per second`
      : `${limitSize} ${LIMIT_LABELS[limitName]}`
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

/** A permit is free when the client closes something, at a time that is not known here. */
export const PERMIT_RETRY_MS = 5000

/** `cost` is that of the refused call in units. */
export function permitRefusal({ limitName, limitSize }: NoPermit, cost: number, subscription?: string): Refusal {
  // Where the plan allows none, no time helps.
  const mayRetry = limitSize > 0
  return {
    ...(subscription === undefined ? {} : { subscription }),
    code: 'rate-limited',
    message: `limit reached: ${limitSize} ${LIMIT_LABELS[limitName]}`,
    data: {
      ...{ reason: 'connections', limit: limitName, size: limitSize, cost },
      ...(mayRetry ? { retryAfterMs: PERMIT_RETRY_MS } : {}),
    },
    ...(mayRetry ? { retryAfterSeconds: PERMIT_RETRY_MS / 1000 } : {}),
  }
}

export function sizeRefusal(limit: 'requestBytes' | 'batchItems', size: number): Refusal {
  return { code: 'too-large', message: `limit reached: ${size} ${LIMIT_LABELS[limit]}`, data: { limit, size } }
}

/** A body whose content type or encoding is not read here. */
export function mediaTypeRefusal(message: string): Refusal {
  return { code: 'unsupported-media-type', message, data: { fix: ERRORS['unsupported-media-type'].fix } }
}

/** A compressed body whose inflation ratio is beyond that of any real request. */
export function inflateRatioRefusal(size: number): Refusal {
  const message = `limit reached: a compressed body may inflate to ${size} times its size; send it uncompressed`
  return { code: 'too-large', message, data: { limit: 'inflateRatio', size } }
}

/** A request that would exceed a limit of held bytes; `size` in bytes. */
export function heldBytesRefusal(limit: HeldBytesLimit, size: number): Refusal {
  const whose = limit === 'heldBytes' ? 'this process' : 'one subscription'
  return {
    code: 'overloaded',
    message: `limit reached: ${size} bytes of requests and responses held for ${whose}`,
    data: { limit, size, fix: ERRORS.overloaded.fix },
    retryAfterSeconds: 2,
  }
}

/** The same for the response to a call that was forwarded and stays charged. */
export function heldResponseRefusal(limit: HeldBytesLimit, size: number): Refusal {
  const { message, data, ...others } = heldBytesRefusal(limit, size)
  return { ...others, message: `${message}; ${STAYS_CHARGED}`, data: { ...data, charged: true } }
}

export const STAYS_CHARGED = 'the call was forwarded and charged, and its response is dropped'

export function upstreamRefusal(code: 'no-upstream' | 'upstream-timeout' | 'draining'): Refusal {
  return {
    code,
    message: ERRORS[code].sentence,
    data: {},
    ...(code === 'upstream-timeout' ? {} : { retryAfterSeconds: 2 }),
  }
}

/** A call without a response from a node; `cost` is that of the call in units. */
export function failureRefusal({ kind }: UpstreamFailure, cost: number): Refusal {
  if (kind === 'too-large') {
    const message = 'the request is larger than a node accepts, by default 51200 bytes: split it'
    return { code: kind, message, data: { limit: 'nodeRequestBytes', size: null } }
  }
  if (kind === 'over-share') return overShareRefusal(cost)
  return upstreamRefusal(kind === 'timeout' ? 'upstream-timeout' : 'no-upstream')
}

/** Whether a request without a response from a node is refunded. One that a node has read and refused is free only as one is that the gateway refuses. */
export function isRefunded(
  { kind, isSent }: UpstreamFailure,
  freeRefusals: FreeRefusals,
  { subscription, bytes }: { readonly subscription: string; readonly bytes: number },
): boolean {
  if (kind === 'too-large' || kind === 'declined') return freeRefusals.take(subscription, bytes)
  return !isSent
}

/** The limit of a subscription's calls at a node whose connections are scarce; its size changes with their use. */
export const NODE_CONNECTIONS = 'nodeConnectionsPerSubscription'

function overShareRefusal(cost: number): Refusal {
  return {
    code: 'rate-limited',
    message: 'too many calls of one subscription wait for a connection to a node; read responses as they arrive',
    data: { reason: 'connections', limit: NODE_CONNECTIONS, size: null, cost, retryAfterMs: 2000 },
    retryAfterSeconds: 2,
  }
}

/** The JSON-RPC response to one refused call, with its id byte for byte. */
export function errorResponse(refusal: Refusal, request: RefusableRequest, id: string): string {
  const { code, message, data } = refusal
  request.onRefused?.(refusal, request.requestId)
  const error = {
    code: (ERRORS[code] as { jsonRpc?: number }).jsonRpc ?? ERRORS.internal.jsonRpc,
    message,
    data: { ...data, request_id: request.requestId, docs_url: request.docsUrl?.(code) },
  }
  return `{"jsonrpc":"2.0","error":${JSON.stringify(error)},"id":${id}}`
}

export function httpStatusOf(refusal: Refusal): number {
  return (ERRORS[refusal.code] as { http?: number }).http ?? 500
}

function wholeSeconds(ms: number): number {
  return Math.min(RETRY_AFTER_SECONDS_MAX, Math.max(1, Math.ceil(ms / 1000)))
}
