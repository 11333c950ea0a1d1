import { ERRORS } from '../../contract/errors.ts'

type RpcErrorCode = 'invalid-params' | 'blocks-not-held' | 'too-large' | 'method-not-found' | 'rate-limited'

/** Names of the limits, as used in errors and metrics. */
export const LIMIT_NAMES = [
  'unitsPerSecond',
  'healthPerSecond',
  'requestsPerClient',
  'requestsInAll',
  'unreadBytes',
  'requestBytes',
  'batchItems',
  'responseBytes',
  'logBlocks',
  'logs',
] as const
export type LimitName = (typeof LIMIT_NAMES)[number]

export type LimitData = {
  readonly limit: LimitName
  readonly size: number
  readonly cost?: number
  /** Null where waiting does not help. */
  readonly retryAfterMs?: number | null
  readonly fix?: string
}

/** A call that results in a JSON-RPC error. */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  readonly code: number
  readonly data: Readonly<Record<string, unknown>> | undefined

  constructor(code: RpcErrorCode, detail?: string, data?: Readonly<Record<string, unknown>>) {
    const { jsonRpc, sentence } = ERRORS[code]
    super(detail === undefined ? sentence : `${sentence.replace(/\.$/, '')}: ${detail}`)
    this.code = jsonRpc
    this.data = data
  }
}

/** A call over a limit. Only work that was done is charged. */
export class LimitFailure extends RpcFailure {
  readonly limit: LimitName
  /** When the same call may succeed; undefined where waiting does not help. */
  readonly retryAfterMs: number | undefined

  constructor(reason: string, data: LimitData) {
    const canWait = typeof data.retryAfterMs === 'number' && Number.isFinite(data.retryAfterMs)
    const wait = canWait ? { retryAfterMs: Math.ceil(data.retryAfterMs as number) } : {}
    const canRetry = data.retryAfterMs !== undefined
    super(canRetry ? 'rate-limited' : 'too-large', undefined, { ...data, ...wait })
    this.message = canRetry ? `limit reached: ${reason}` : `${this.message.replace(/\.$/, '')}: ${reason}`
    this.limit = data.limit
    this.retryAfterMs = wait.retryAfterMs
  }
}

/** The response of a call or of a request would exceed the limit. */
export function responseTooLarge(size: number): LimitFailure {
  const fix = 'Ask for fewer blocks, transactions or logs in one request.'
  return new LimitFailure(`a response has at most ${size} bytes`, { limit: 'responseBytes', size, fix })
}

/** The budget of the client is used up. */
export function workLimitReached(size: number, cost: number, retryAfterMs: number): LimitFailure {
  // Infinity: the work costs more than the budget ever holds.
  const wait = Number.isFinite(retryAfterMs) ? retryAfterMs : null
  return new LimitFailure(`${size} work units per second`, {
    limit: 'unitsPerSecond',
    size,
    cost,
    retryAfterMs: wait,
  })
}
